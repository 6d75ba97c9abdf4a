// SPDX-License-Identifier: Apache-2.0
// The endpoints that send to this one, as the program declares them. They become the mailbox's neighbours.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <wherry/mailbox.hpp>

#include "link_table.hpp"
#include "name.hpp"

namespace wherry::mpi {

/// An endpoint that sends to this one, and its share of the budget.
struct NeighbourName {
  Name name;
  std::uint32_t weight = 1;
};

class Neighbours {
 public:
  Neighbours(Mailbox& mailbox, LinkTable& links, Layout layout) : mailbox_(mailbox), links_(links), layout_(layout) {}

  /// From any thread.
  void declare(std::vector<NeighbourName> neighbours);
  /// Applies the last declaration if the layout is `topology`. With other layouts, a declared neighbour that never
  /// sends would cost a connection.
  void apply() {
    if (changed_.load(std::memory_order_relaxed)) apply_changed();
  }

 private:
  void apply_changed();

  Mailbox& mailbox_;
  LinkTable& links_;
  const Layout layout_;
  std::mutex mutex_;
  std::vector<NeighbourName> declared_;
  std::atomic<bool> changed_{false};
};

}  // namespace wherry::mpi
