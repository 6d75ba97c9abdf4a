// SPDX-License-Identifier: Apache-2.0
// Loads libfabric when the first connection needs it: WHERRY_LIBFABRIC, else libfabric.so.1.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

namespace wherry::fabric::ofi {

/// The entry points that are symbols. All other calls go through the tables of libfabric's objects.
struct Library {
  decltype(&::fi_getinfo) getinfo;
  decltype(&::fi_freeinfo) freeinfo;
  decltype(&::fi_dupinfo) dupinfo;
  decltype(&::fi_fabric) fabric;
  decltype(&::fi_strerror) strerror;
  decltype(&::fi_version) version;
  std::string file;

  /// Returns the loaded library. Throws Error: ENOTSUP (no such library, or not libfabric; the text tells what to
  /// install), EMFILE.
  static const Library& instance();
};

/// Throws Error(EMFILE or ENFILE) if `error` is one of these, or if this process has no free descriptor. Call it after
/// a failed call: libfabric reports a lack of descriptors with its own codes, and the loader does not report it.
void check_descriptors(int error, const char* operation, const std::string& what);

}  // namespace wherry::fabric::ofi
