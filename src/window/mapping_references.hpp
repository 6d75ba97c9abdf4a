// SPDX-License-Identifier: Apache-2.0
// Tells the peer which of its windows this side has mapped: counts references for each entry of its table.
//
// May include: base, arch, layout, fabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "window/peers_page.hpp"

namespace wherry::window {

/// One use of an entry of the peer's table.
struct Entry {
  std::size_t index = 0;
  std::uint64_t sequence = 0;
  auto operator<=>(const Entry&) const = default;
};

/// Thread-safe. Mappings may outlive the connection; after close() the peer is told nothing.
class MappingReferences {
 public:
  explicit MappingReferences(PeersPage& peers);

  /// Counts one mapping more or less. The peer's word is stored before this returns.
  void add(const Entry& entry);
  void remove(const Entry& entry);
  void close();

 private:
  void store_mark(std::size_t index);

  const std::uint64_t generation_;  ///< a forked child removes no mark: its parent may map the same window
  std::mutex mutex_;                // guards the members below
  PeersPage* peers_;                ///< null: closed
  std::map<Entry, std::size_t> mapped_;
};

}  // namespace wherry::window
