// SPDX-License-Identifier: Apache-2.0
// libfabric, loaded when the first connection needs it: WHERRY_LIBFABRIC, else libfabric.so.1.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

namespace wherry::fabric::ofi {

/// The entry points that are symbols; all other calls go through the objects' tables.
struct Library {
  decltype(&::fi_getinfo) getinfo;
  decltype(&::fi_freeinfo) freeinfo;
  decltype(&::fi_dupinfo) dupinfo;
  decltype(&::fi_fabric) fabric;
  decltype(&::fi_strerror) strerror;
  decltype(&::fi_version) version;
  std::string file;

  /// Throws Error: ENOTSUP, which says what to install (no such library, or not one of libfabric's), EMFILE.
  static const Library& instance();
};

/// Call this after a call that failed with `error`. Throws Error(EMFILE or ENFILE) if that is the error, or if this
/// process has no free descriptor. libfabric reports that by codes of its own, and the loader does not report it.
void check_descriptors(int error, const char* operation, const std::string& what);

}  // namespace wherry::fabric::ofi
