// SPDX-License-Identifier: Apache-2.0
// Which of the peer's windows this side has mapped, as the peer is told: a reference for each entry of its table. May
// include: base, arch, layout, fabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "window/peers_page.hpp"

namespace wherry::window {

/// An entry of the peer's table, as it was at some time.
struct Entry {
  std::size_t index = 0;
  std::uint64_t sequence = 0;
  auto operator<=>(const Entry&) const = default;
};

/// Mappings may outlive the connection; then the peer is told no more. From any thread.
class MappingReferences {
 public:
  explicit MappingReferences(PeersPage& peers);

  /// One mapping more, or less. The peer is told before this returns.
  void add(const Entry& entry);
  void remove(const Entry& entry);
  void close();

 private:
  void tell(std::size_t index);

  const std::uint64_t generation_;  ///< a forked child takes no mark away: its parent may map the same
  std::mutex mutex_;                // guards what follows
  PeersPage* peers_;                ///< null: closed
  std::map<Entry, std::size_t> mapped_;
};

}  // namespace wherry::window
