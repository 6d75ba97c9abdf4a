// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/mapped_end.hpp"

#include <cstring>

#include "fabric/check.hpp"
#include "fabric/inproc/put_copy.hpp"
#include "memory/arena.hpp"
#include "memory/arena_region.hpp"

namespace wherry::fabric::inproc {

std::size_t MappedEnd::put(std::uint64_t offset, std::span<const std::byte> source) {
  if (source.empty() || !in_range(offset, source.size(), remote_bytes()) || peer_gone()) return 0;
  copy_put(map() + offset, source.data(), source.size());
  return source.size();
}

bool MappedEnd::get(std::span<std::byte> destination, std::uint64_t offset) {
  if (!in_range(offset, destination.size(), remote_bytes()) || peer_gone()) return false;
  if (!destination.empty()) std::memcpy(destination.data(), map() + offset, destination.size());
  return true;
}

std::shared_ptr<memory::RemoteRegion> MappedEnd::reach_arena(std::uint64_t place, std::size_t bytes) {
  return std::make_shared<memory::ArenaRegion>(memory::Arena::instance().view(), place, bytes);
}

bool MappedEnd::signal(std::uint64_t offset, std::uint64_t value, Bell bell) {
  if (!is_word(offset, remote_bytes()) || peer_gone()) return false;
  reinterpret_cast<layout::Word*>(map() + offset)->store(value, std::memory_order_release);  // SIGNAL
  announce(bell);
  return true;
}

}  // namespace wherry::fabric::inproc
