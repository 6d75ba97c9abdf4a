// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/exposed_memory.hpp"

#include <cerrno>

#include <wherry/error.hpp>

#include "fabric/check.hpp"
#include "memory/arena.hpp"

namespace wherry::fabric::ofi {

int ExposedMemory::find(const memory::RemoteKey& key, std::size_t bytes, RemotePlace& place) {
  memory::Arena& arena = memory::Arena::instance();
  if (bytes == 0 || !arena.exposes(key, bytes)) return ENXIO;
  if (memory::kind_of(key) != memory::KeyKind::arena) return ENOTSUP;
  const auto asked = std::pair(key.place, bytes);
  auto known = parts_.find(asked);
  if (known == parts_.end()) {
    if (parts_.size() >= kMost) return ENOSPC;
    Part part{.range = arena.view()->map(key.place, bytes), .bytes = bytes, .registered = nullptr};
    if (part.range.start == nullptr) return ENOMEM;
    try {
      part.registered = endpoint_.expose({part.range.start, bytes});
    } catch (const Error& error) {
      return error.code().value();
    }
    known = parts_.emplace(asked, std::move(part)).first;
    by_key_.emplace(known->second.registered->key(), &known->second);
  }
  place = {known->second.registered->key(), known->second.registered->address()};
  return 0;
}

std::byte* ExposedMemory::word_at(std::uint64_t key, std::uint64_t offset) const {
  const auto known = by_key_.find(key);
  if (known == by_key_.end() || !is_word(offset, known->second->bytes)) return nullptr;
  return known->second->range.start + offset;
}

}  // namespace wherry::fabric::ofi
