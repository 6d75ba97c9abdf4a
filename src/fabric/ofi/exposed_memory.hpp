// SPDX-License-Identifier: Apache-2.0
// What this side exposes, as one peer has asked for it.
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

/// Registers memory of the arena when the peer asks for it. It stays registered, and mapped, until the connection ends:
/// a late write to memory that is exposed no longer reaches pages that are never read. One thread at a time.
class ExposedMemory {
 public:
  /// What one peer may have at a time.
  static constexpr std::size_t kMost = 65536;

  explicit ExposedMemory(const Domain& domain) : domain_(domain) {}

  /// Returns an errno value: ENXIO if nothing like that is exposed now, ENOTSUP if it is memory that cannot be
  /// registered (mappings of files), ENOSPC, ENOMEM.
  int find(const memory::RemoteKey& key, std::size_t bytes, RemotePlace& place);
  /// The word at `offset` of the memory that was registered by that key. Null: there is none.
  [[nodiscard]] std::byte* word_at(std::uint64_t key, std::uint64_t offset) const;

 private:
  struct Part {
    memory::ArenaView::Range range;
    std::size_t bytes = 0;
    std::unique_ptr<Registration> registered;
  };

  const Domain& domain_;
  std::map<std::pair<std::uint64_t, std::size_t>, Part> parts_;  // by place and bytes
  std::map<std::uint64_t, const Part*> by_key_;
};

}  // namespace wherry::fabric::ofi
