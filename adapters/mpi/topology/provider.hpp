// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "adapters/mpi/provider/topology.h"

namespace wherry::topology {

/// The functions of libwherry-fi.so, which libfabric loads when MPI begins and unloads when MPI ends. They are looked
/// up for each use; the library stays loaded while this object exists.
class Provider {
 public:
  Provider() noexcept;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  ~Provider();

  /// False if the library is not in this process; then a function is null.
  [[nodiscard]] bool is_there() const noexcept { return self != nullptr && topology != nullptr && forget != nullptr; }

 private:
  void* library_;

 public:
  wherry_fi_self_call* const self;
  wherry_fi_topology_call* const topology;
  wherry_fi_forget_call* const forget;
};

}  // namespace wherry::topology
