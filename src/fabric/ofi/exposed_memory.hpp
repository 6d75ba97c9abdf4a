// SPDX-License-Identifier: Apache-2.0
// The exposed memory of this side that one peer has asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "fabric/ofi/endpoint.hpp"
#include "memory/arena_view.hpp"
#include "memory/region.hpp"

namespace wherry::fabric::ofi {

/// Registers memory of the arena when the peer asks for it. It stays registered and mapped until the connection ends: a
/// late write to memory that is no longer exposed goes to pages that are never read. One thread at a time.
class ExposedMemory {
 public:
  /// Limit of registrations for one peer.
  static constexpr std::size_t kMost = 65536;

  explicit ExposedMemory(const Endpoint& endpoint) : endpoint_(endpoint) {}

  /// Registers the memory, if necessary, and sets `place`. Returns 0 or an errno value: ENXIO if no such memory is
  /// exposed now, ENOTSUP if it cannot be registered (mappings of files), ENOSPC, ENOMEM.
  int find(const memory::RemoteKey& key, std::size_t bytes, RemotePlace& place);
  /// Returns the word at `offset` of the memory that was registered with that key; null if there is none.
  [[nodiscard]] std::byte* word_at(std::uint64_t key, std::uint64_t offset) const;

 private:
  struct Part {
    memory::ArenaView::Range range;
    std::size_t bytes = 0;
    std::unique_ptr<Registration> registered;
  };

  const Endpoint& endpoint_;
  std::map<std::pair<std::uint64_t, std::size_t>, Part> parts_;  // by place and bytes
  std::map<std::uint64_t, const Part*> by_key_;
};

}  // namespace wherry::fabric::ofi
