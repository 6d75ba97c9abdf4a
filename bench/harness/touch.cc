// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/touch.hpp"

#include <cstring>

namespace wherry::bench {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

// Plain loops, which the compiler makes vectors of. Not memset: it may take another kind of store, at a size of its own
// choice, and peers in other languages could not do the same.
[[gnu::always_inline]] inline void store_words(std::byte* to, std::size_t words, std::uint64_t word) {
  for (std::size_t i = 0; i < words; ++i) std::memcpy(to + i * kWord, &word, kWord);
}

[[gnu::always_inline]] inline std::uint64_t add_words(const std::byte* from, std::size_t words) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i * kWord, kWord);
    sum += word;
  }
  return sum;
}

void store_plain(std::byte* to, std::size_t words, std::uint64_t word) { store_words(to, words, word); }
std::uint64_t add_plain(const std::byte* from, std::size_t words) { return add_words(from, words); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] void store_avx2(std::byte* to, std::size_t words, std::uint64_t word) {
  store_words(to, words, word);
}
[[gnu::target("avx2")]] std::uint64_t add_avx2(const std::byte* from, std::size_t words) {
  return add_words(from, words);
}
const bool kAvx2 = __builtin_cpu_supports("avx2") != 0;
const auto kStore = kAvx2 ? store_avx2 : store_plain;
const auto kAdd = kAvx2 ? add_avx2 : add_plain;
#else
constexpr auto kStore = store_plain;
constexpr auto kAdd = add_plain;
#endif

std::uint64_t cut(std::uint64_t word, std::size_t bytes) {
  std::uint64_t first = 0;
  std::memcpy(&first, &word, bytes);
  return first;
}

}  // namespace

void write_all(std::span<std::byte> message, std::uint64_t word) {
  const std::size_t words = message.size() / kWord;
  kStore(message.data(), words, word);
  if (const std::size_t rest = message.size() % kWord; rest != 0) {
    std::memcpy(message.data() + words * kWord, &word, rest);
  }
}

std::uint64_t sum_all(std::span<const std::byte> message) {
  const std::size_t words = message.size() / kWord;
  std::uint64_t last = 0;
  if (const std::size_t rest = message.size() % kWord; rest != 0) {
    std::memcpy(&last, message.data() + words * kWord, rest);
  }
  return kAdd(message.data(), words) + last;
}

std::uint64_t sum_of(std::uint64_t size, std::uint64_t word) { return size / kWord * word + cut(word, size % kWord); }

}  // namespace wherry::bench
