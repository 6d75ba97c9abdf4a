// SPDX-License-Identifier: Apache-2.0
#include "neighbours.hpp"

#include <utility>

namespace wherry::mpi {

void Neighbours::declare(std::vector<NeighbourName> neighbours) {
  const std::lock_guard guard(mutex_);
  declared_ = std::move(neighbours);
  // DECLARED release: the neighbours that apply_changed() is to read; it takes the mutex.
  changed_.store(true, std::memory_order_release);
}

void Neighbours::apply_changed() {
  // DECLARED acquire
  if (!changed_.exchange(false, std::memory_order_acquire)) return;
  if (layout_ != Layout::topology) return;
  const std::lock_guard guard(mutex_);
  std::vector<Mailbox::Neighbour> neighbours;
  for (const NeighbourName& neighbour : declared_) {
    Link& link = links_.link_to(neighbour.name);
    if (link.self || links_.connect(link) != 0) continue;
    neighbours.push_back({link.peer, neighbour.weight});
  }
  mailbox_.set_neighbours(neighbours);
}

}  // namespace wherry::mpi
