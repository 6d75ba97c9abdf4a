// SPDX-License-Identifier: Apache-2.0
//
// The touch rule. What moves data is worth what a program gets out of it, and a program writes what it sends and reads
// what it receives: with "touched" figures the producer stores every byte of each message, with a value that changes
// from message to message, and the consumer loads every byte and adds it up. The sums are compared at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::bench {

/// What message number `message` of a sender is filled with.
constexpr std::uint64_t pattern(std::uint32_t sender, std::uint64_t message) {
  return (message + 1) * 0x9E3779B97F4A7C15ULL + (std::uint64_t{sender} << 56);
}

/// Stores every byte: `word` again and again, in the machine's byte order; the last one may be cut off.
void write_all(std::span<std::byte> message, std::uint64_t word);

/// Loads every byte: the sum of all words, the last one filled up with zeros.
std::uint64_t sum_all(std::span<const std::byte> message);

/// What sum_all gives for `size` bytes that write_all has written.
std::uint64_t sum_of(std::uint64_t size, std::uint64_t word);

}  // namespace wherry::bench
