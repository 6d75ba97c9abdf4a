// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/touched_parts.hpp"

#include <array>
#include <atomic>
#include <cstddef>

namespace wherry::file::mapped {
namespace {

constexpr std::size_t kWordBits = 64;
constexpr std::size_t kBits = std::size_t{1} << 17;  // 8 GiB of parts, in 16 KiB
constinit std::array<std::atomic<std::uint64_t>, kBits / kWordBits> bits{};
constinit std::atomic<std::size_t> bits_set{0};

void forget_all() {
  for (auto& word : bits) word.store(0, std::memory_order_relaxed);
  bits_set.store(0, std::memory_order_relaxed);
}

bool touch(std::uint64_t mapping, std::uint64_t part) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  const std::size_t bit = ((mapping * kGolden ^ part) * kGolden >> 40) % kBits;
  auto& word = bits[bit / kWordBits];
  const std::uint64_t mask = std::uint64_t{1} << (bit % kWordBits);
  if ((word.load(std::memory_order_relaxed) & mask) != 0) return true;
  word.fetch_or(mask, std::memory_order_relaxed);
  if (bits_set.fetch_add(1, std::memory_order_relaxed) >= kBits / 2) forget_all();
  return false;
}

}  // namespace

bool was_touched(std::uint64_t mapping, std::uint64_t offset, std::uint64_t bytes) noexcept {
  const std::uint64_t last = (offset + bytes - 1) / kPart;
  const bool touched = touch(mapping, last);
  for (std::uint64_t part = offset / kPart; !touched && part < last; part++) touch(mapping, part);
  return touched;
}

}  // namespace wherry::file::mapped
