// SPDX-License-Identifier: Apache-2.0
#include "messenger.hpp"

namespace wherry::mpi {

void Messenger::declare(std::vector<NeighbourName> neighbours) {
  const std::lock_guard guard(declared_mutex_);
  declared_ = std::move(neighbours);
  // DECLARED release: the neighbours that progress() is to read; it takes the mutex.
  declared_changed_.store(true, std::memory_order_release);
}

// Only for a layout by topology: with others a declared neighbour that never sends would cost a connection.
void Messenger::apply_declared() {
  // DECLARED acquire
  if (!declared_changed_.exchange(false, std::memory_order_acquire)) return;
  if (layout_ != Layout::topology) return;
  const std::lock_guard guard(declared_mutex_);
  std::vector<Mailbox::Neighbour> neighbours;
  for (const NeighbourName& neighbour : declared_) {
    Link& link = link_to(neighbour.name);
    if (link.self || connect(link) != 0) continue;
    neighbours.push_back({link.peer, neighbour.weight});
  }
  mailbox_.set_neighbours(neighbours);
}

}  // namespace wherry::mpi
