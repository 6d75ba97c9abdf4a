// SPDX-License-Identifier: Apache-2.0
// For tests: bytes that depend on their position in a stream, so that a lost, repeated, altered or misplaced byte shows
// at once, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace wherry {

class Pattern {
 public:
  explicit Pattern(std::uint64_t seed) : table_(2 * kPeriod) {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < kPeriod; ++i) table_[i] = table_[i + kPeriod] = static_cast<std::byte>(random());
  }

  void fill(std::span<std::byte> bytes, std::uint64_t position) const {
    each_piece(bytes, position, [](std::span<std::byte> piece, const std::byte* expected) {
      std::memcpy(piece.data(), expected, piece.size());
      return true;
    });
  }

  [[nodiscard]] bool matches(std::span<const std::byte> bytes, std::uint64_t position) const {
    return each_piece(bytes, position, [](std::span<const std::byte> piece, const std::byte* expected) {
      return std::memcmp(piece.data(), expected, piece.size()) == 0;
    });
  }

  /// What `fill` would write, without a copy. At most kMostInPlace bytes.
  static constexpr std::size_t kMostInPlace = 65'521;
  [[nodiscard]] std::span<const std::byte> in_place(std::size_t count, std::uint64_t position) const {
    return {table_.data() + position % kPeriod, count};
  }

  [[nodiscard]] std::vector<std::byte> bytes(std::size_t count, std::uint64_t position = 0) const {
    std::vector<std::byte> result(count);
    fill(result, position);
    return result;
  }

 private:
  // A prime, so that no multiple of it is a multiple of a ring's size: a whole lap too many or too few shows.
  static constexpr std::size_t kPeriod = kMostInPlace;

  template <class Byte, class Do>
  bool each_piece(std::span<Byte> bytes, std::uint64_t position, Do&& act) const {
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kPeriod));
      if (!act(piece, table_.data() + position % kPeriod)) return false;
      position += piece.size();
      bytes = bytes.subspan(piece.size());
    }
    return true;
  }

  std::vector<std::byte> table_;
};

}  // namespace wherry
