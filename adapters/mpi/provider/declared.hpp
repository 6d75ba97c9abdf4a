// SPDX-License-Identifier: Apache-2.0
// The topologies that the program has declared. The union over its live communicators becomes the neighbours of the
// mailbox of the process's current endpoint.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/mpi/messenger/messenger.hpp"

namespace wherry::mpi {

/// Thread-safe. A messenger applies the declarations in one of its next progress(), in its own thread.
class Declared {
 public:
  static Declared& instance();

  /// Add and remove an open messenger. The first that is open is the current one.
  void opened(Messenger& messenger);
  void closed(Messenger& messenger);

  /// The functions of topology.h. They return 0 or a negative errno value.
  int self(void* name, std::size_t* bytes);
  int declare(std::uint64_t communicator, std::vector<NeighbourName> neighbours);
  int forget(std::uint64_t communicator);

 private:
  void declare_to_current();

  std::mutex mutex_;
  std::vector<Messenger*> messengers_;
  std::map<std::uint64_t, std::vector<NeighbourName>> communicators_;
};

}  // namespace wherry::mpi
