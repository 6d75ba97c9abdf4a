// SPDX-License-Identifier: Apache-2.0
// The control page of one side of a connection. With its words the two ends put each other to sleep and wake each
// other. The page lies before the segment, in the same memory. The peer writes it, and the owner reads it.
//
//   0          64              128             192              256               320         4096
//   +----------+---------------+---------------+----------------+-----------------+--- ... ---+--------- ... ----+
//   | header   | data sleeper  | space sleeper | data publisher | space publisher | reserved  | the segment      |
//   +----------+---------------+---------------+----------------+-----------------+--- ... ---+--------- ... ----+
//     W: owner   W: peer's       W: peer's       W: peer's        W: peer's
//                receiver        sender          sender           receiver
//
// A compact segment begins at 320 instead of 4096, in the same page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::layout {

inline constexpr std::uint32_t kBellPageVersion = 1;
inline constexpr std::size_t kBellPageBytes = 4096;

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8, "words are shared between processes");

/// The epoch is odd while its writer sleeps, or is about to. It grows with each change, so that one sleep is rung once.
struct alignas(64) Waiter {
  Word epoch;  // W: the sleeper (the peer of the page's owner), release; R: the owner, after publishing
  std::uint64_t reserved[7];
};

/// Lets the peer recognise the owner's process before it accesses private memory of that process.
struct Recognition {
  std::uint64_t address;  // of the number in the owner's private memory
  std::uint64_t number;   // random; 0: the owner cannot be recognised
};
static_assert(sizeof(Recognition) == 16 && offsetof(Recognition, number) == 8);

/// How the peer's thread publishes the words that the owner waits for, and when it last rang.
struct alignas(64) Publisher {
  Word unfenced;  // W: the publisher (the peer of the page's owner), release; R: the owner, before it sleeps. Not 0:
                  // the publisher looks for sleepers without a fence, so a side about to sleep must interrupt it
  Word rung_ns;   // W: the publisher, before it rings: the time of CLOCK_MONOTONIC; 0: it has not rung yet
  Word rung_on;   // W: the publisher, before it rings: the CPU that it runs on
  std::uint64_t reserved[5];
};

struct BellPage {
  std::uint32_t version;  // W: owner, once, before the peer maps it
  std::uint32_t reserved0;
  std::uint64_t segment_bytes;  // W: owner, once; for tools only: the handshake gives the peer size and start
  Recognition recognition;      // W: owner, once, before the peer maps it
  std::uint64_t reserved1[4];
  Waiter waiters[2];        // W: peer; [0] its receiver waits for data, [1] its sender waits for space
  Publisher publishers[2];  // W: peer; [0] its sender brings data, [1] its receiver gives space back
};
static_assert(std::is_standard_layout_v<BellPage>);
static_assert(sizeof(Waiter) == 64 && alignof(Waiter) == 64 && offsetof(Waiter, epoch) == 0);
static_assert(offsetof(BellPage, version) == 0 && offsetof(BellPage, segment_bytes) == 8);
static_assert(offsetof(BellPage, recognition) == 16);
static_assert(offsetof(BellPage, waiters) == 64, "the owner's line, then one line for each of the peer's two writers");
static_assert(sizeof(Publisher) == 64 && alignof(Publisher) == 64 && offsetof(Publisher, unfenced) == 0);
static_assert(offsetof(Publisher, rung_ns) == 8 && offsetof(Publisher, rung_on) == 16);
static_assert(offsetof(BellPage, publishers) == 192, "as many lines again for the other two threads of the peer");
static_assert(sizeof(BellPage) == 320 && sizeof(BellPage) <= kBellPageBytes);

/// Returns the offset of the segment in the memory of one side.
constexpr std::size_t segment_place(bool compact) { return compact ? sizeof(BellPage) : kBellPageBytes; }

}  // namespace wherry::layout
