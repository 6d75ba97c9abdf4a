// SPDX-License-Identifier: Apache-2.0
// Games for the two sides of a connection, played by two threads or by two processes.
#pragma once

#include <cstdint>
#include <random>
#include <utility>

#include "tests/conformance/fabric_pair.hpp"

namespace wherry::conformance {

/// Each round puts a random range, cut at random places, and signals; the other side checks every byte as soon as it
/// sees the signal, and says that the source may be used again.
class Rounds {
 public:
  static constexpr std::size_t kBytes = 64 * kPage, kWords = kPage;
  static constexpr std::uint64_t kRounds = 150;

  static Offer offer() { return {.segment_bytes = kWords + kBytes}; }
  static void send(Connection& connection, std::uint64_t seed);
  static void receive(Connection& connection, std::uint64_t seed);

 private:
  static std::pair<std::size_t, std::size_t> range(std::mt19937_64& random);
  static std::size_t part_of(std::size_t left, std::size_t bytes, std::mt19937_64& random);
};

/// Each side sleeps for the other's word, at all moments relative to the other's store.
class PingPong {
 public:
  enum class By : std::uint8_t { wait, descriptor };

  static void serve(Connection& connection, std::uint64_t rounds, By by);
  static void answer(Connection& connection, std::uint64_t rounds, By by);

 private:
  static void strike(Connection& connection, std::mt19937_64& random, std::uint64_t round, Bell bell);
  static Wake hear(Connection& connection, std::uint64_t round, Bell bell, By by);
};

}  // namespace wherry::conformance
