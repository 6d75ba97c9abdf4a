// SPDX-License-Identifier: Apache-2.0
// What stands in the files of `wherry bench file`: no two places, and no two salts, have the same word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::bench::file {

/// The word at that offset, a multiple of 8 (splitmix64).
inline std::uint64_t word_at(std::uint64_t salt, std::uint64_t offset) {
  std::uint64_t word = (salt << 40) + offset / sizeof(std::uint64_t) + 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

/// Of a file with several processes' files beside it.
inline std::uint64_t salt_of(std::uint64_t salt, std::uint32_t process) { return salt * 4096 + process; }

inline void fill(std::span<std::uint64_t> words, std::uint64_t salt, std::uint64_t offset) {
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = word_at(salt, offset + i * sizeof(std::uint64_t));
}

/// The offset of the first word that does not belong there; UINT64_MAX: there is none.
inline std::uint64_t first_difference(std::span<const std::uint64_t> words, std::uint64_t salt, std::uint64_t offset) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint64_t here = offset + i * sizeof(std::uint64_t);
    if (words[i] != word_at(salt, here)) return here;
  }
  return UINT64_MAX;
}

inline std::uint64_t sum_of(std::span<const std::uint64_t> words) {
  std::uint64_t sum = 0;
  for (const std::uint64_t word : words) sum += word;
  return sum;
}

}  // namespace wherry::bench::file
