// SPDX-License-Identifier: Apache-2.0
// The control page of one side of a connection: what its two ends need to put each other to sleep and wake
// each other up. It lies in front of the segment in the same memory; the peer writes it, the owner reads it.
//
//   0          64              128             192              256               320         4096
//   +----------+---------------+---------------+----------------+-----------------+--- ... ---+--------- ... ----+
//   | header   | data sleeper  | space sleeper | data publisher | space publisher | reserved  | the segment      |
//   +----------+---------------+---------------+----------------+-----------------+--- ... ---+--------- ... ----+
//     W: owner   W: peer's       W: peer's       W: peer's        W: peer's
//                receiver        sender          sender           receiver
//
// Of a compact segment there is no 4096: it begins at 320, in the same page.
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

/// Odd while the writer sleeps, or is about to; it grows with each change, so that one sleep is rung once.
struct alignas(64) Waiter {
  Word epoch;  // W: the sleeper (the peer of the page's owner), release; R: the owner, after publishing
  std::uint64_t reserved[7];
};

/// By which the peer recognises the owner's process before it reaches into memory that was never shared.
struct Recognition {
  std::uint64_t address;  // where, in the owner's private memory, the number is
  std::uint64_t number;   // random; 0: the owner cannot be recognised
};
static_assert(sizeof(Recognition) == 16 && offsetof(Recognition, number) == 8);

/// How the writer publishes what the owner waits for.
struct alignas(64) Publisher {
  Word unfenced;  // W: the publisher (the peer of the page's owner), release; R: the owner, before it sleeps. Not 0:
                  // it looks for sleepers without a fence, and a side about to sleep must interrupt it
  Word rung_ns;   // W: the publisher, before it rings: CLOCK_MONOTONIC then; 0: it has not rung yet
  Word rung_on;   // W: the publisher, before it rings: the CPU it rings on
  std::uint64_t reserved[5];
};

struct BellPage {
  std::uint32_t version;  // W: owner, once, before the peer maps it
  std::uint32_t reserved0;
  std::uint64_t segment_bytes;  // W: owner, once; for tools only: peers are told in the handshake, where it begins, too
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

/// Where the segment begins in the memory of one side.
constexpr std::size_t segment_place(bool compact) { return compact ? sizeof(BellPage) : kBellPageBytes; }

}  // namespace wherry::layout
