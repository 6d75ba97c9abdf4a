// SPDX-License-Identifier: Apache-2.0
#include "ring/ring.hpp"

#include <bit>

#include "arch/shared_copy.hpp"

namespace wherry::ring {

std::size_t round_capacity(std::size_t bytes) { return std::bit_ceil(std::clamp(bytes, kMinCapacity, kMaxCapacity)); }

std::size_t Producer::copy_in(std::span<const std::byte> bytes, std::size_t uncommitted) {
  const std::size_t space = space_up_to(uncommitted + bytes.size());
  // There is less space than was already copied in: the consumer's word was wrong, and the ring is now broken.
  if (space <= uncommitted) return 0;
  const std::size_t count = space - uncommitted;
  const Regions place = view_.at(position_ + uncommitted, count);
  // Stores through the caches: the consumer reads the bytes next, from a cache that both share. Non-temporal stores are
  // up to 40 % slower here, because the consumer then fetches the bytes from memory.
  arch::copy_into_shared(place.first.data(), bytes.data(), place.first.size());
  if (!place.second.empty()) {
    arch::copy_into_shared(place.second.data(), bytes.data() + place.first.size(), place.second.size());
  }
  return count;
}

std::size_t Consumer::copy_out(std::span<std::byte> buffer) {
  const ConstRegions waiting = peek(buffer.size());
  arch::copy_out_of_shared(buffer.data(), waiting.first.data(), waiting.first.size());
  if (!waiting.second.empty()) {
    arch::copy_out_of_shared(buffer.data() + waiting.first.size(), waiting.second.data(), waiting.second.size());
  }
  consume(waiting.size());
  return waiting.size();
}

}  // namespace wherry::ring
