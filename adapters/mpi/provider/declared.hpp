// SPDX-License-Identifier: Apache-2.0
// The topologies that the program declared: the union over its live communicators becomes the neighbours of the mailbox
// of the process's current endpoint.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/mpi/messenger/messenger.hpp"

namespace wherry::mpi {

/// Threads: any. Messengers apply what is declared in their next progress(), in their own thread.
class Declared {
 public:
  static Declared& instance();

  /// While it is open. The first that is open is the current one.
  void opened(Messenger& messenger);
  void closed(Messenger& messenger);

  /// 0 or a negative errno value, as topology.h says.
  int self(void* name, std::size_t* bytes);
  int declare(std::uint64_t communicator, std::vector<NeighbourName> neighbours);
  int forget(std::uint64_t communicator);

 private:
  void tell_current();

  std::mutex mutex_;
  std::vector<Messenger*> messengers_;
  std::map<std::uint64_t, std::vector<NeighbourName>> communicators_;
};

}  // namespace wherry::mpi
