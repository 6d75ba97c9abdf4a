// SPDX-License-Identifier: Apache-2.0
// One direction of a stream under random operations: Sending at one end, Receiving at the other.
#pragma once

#include <array>
#include <atomic>
#include <random>
#include <vector>

#include <wherry/wherry.hpp>

#include "tests/common/pattern.hpp"

namespace wherry::stress {

/// What a side is in the middle of.
enum class Doing : std::uint8_t {
  nothing,
  send,
  try_send,
  polling,
  waiting,
  zero_copy,
  receive,
  try_receive,
  dozing,
  done
};

/// How far a side has come, for a watchdog in any process.
struct Progress {
  std::atomic<std::uint64_t> operations{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> sleeps{0};  ///< as the stream counts them
  std::atomic<std::uint64_t> wakes{0};
  std::atomic<Doing> doing{Doing::nothing};
};

/// What both kinds of side share: a source of randomness, and moods. A side is quick for a while, then it dozes between
/// operations, so that either peer is asleep at all moments of the other's work.
class Side {
 public:
  Side(Stream& stream, const Pattern& pattern, std::uint64_t seed, Progress& progress)
      : stream_(stream), pattern_(pattern), random_(seed), progress_(progress) {}

 protected:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  /// Mostly tiny, sometimes larger than a ring.
  std::size_t random_size();
  void maybe_doze();
  void begin(Doing doing) { progress_.doing.store(doing, std::memory_order_relaxed); }
  void count(std::size_t bytes, std::uint64_t sleeps);
  void poll(int descriptor);
  /// Throws std::runtime_error: the stream or its bytes are not what they should be.
  [[noreturn]] void fail(const char* what, const Result& result) const;

  Stream& stream_;
  const Pattern& pattern_;
  std::minstd_rand random_;
  Progress& progress_;
  std::uint64_t position_ = 0;

 private:
  int dozes_ = 0;
  std::uint64_t until_mood_ = 1000;
};

class Sending : public Side {
 public:
  using Side::Side;
  /// Makes `operations` random sends, then finishes. Returns how many bytes it sent.
  std::uint64_t run(std::uint64_t operations);

 private:
  void step();
  std::span<const std::byte> next(std::size_t size);
  void send_blocking(std::size_t size);
  void send_gathered(std::size_t size);
  void try_to_send(std::size_t size);
  void write_in_place(std::size_t size);
  void accepted(const Result& result, std::size_t expected);

  std::vector<std::byte> large_;
};

class Receiving : public Side {
 public:
  using Side::Side;
  /// Receives in random ways until the end. Returns how many bytes it received, each checked.
  std::uint64_t run();

 private:
  /// False at the end.
  bool step();
  bool receive_blocking(std::size_t size);
  bool receive_scattered(std::size_t size);
  bool try_to_receive(std::size_t size);
  bool read_in_place(std::size_t size);
  bool took(const Result& result, std::span<const std::byte> bytes);
  std::span<std::byte> room(std::size_t size);

  std::vector<std::byte> buffer_;
};

}  // namespace wherry::stress
