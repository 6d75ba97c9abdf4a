// SPDX-License-Identifier: Apache-2.0
// The segment of one side of a stream: a page of words that the peer writes, then the ring that the peer writes into.
//
//   0          64                  128                 192            4096             4096 + capacity
//   +----------+-------------------+-------------------+---- ... -----+----- ... -------+
//   | header   | incoming          | outgoing          | reserved     | incoming ring   |
//   |          | tail, finished    | head, closed      |              |                 |
//   +----------+-------------------+-------------------+---- ... -----+----- ... -------+
//     W: owner   W: peer's sender    W: peer's receiver                 W: peer's sender
//
// and what the two sides tell each other while connecting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint32_t kStreamVersion = 1;
inline constexpr std::uint32_t kStreamMagic = 0x59524557;  // "WERY" in memory, little-endian
inline constexpr std::size_t kStreamPageBytes = 4096;

struct StreamPage {
  std::uint32_t version;  // W: owner, once; for tools: the peer uses the greeting's
  std::uint32_t reserved0;
  std::uint64_t capacity;  // W: owner, once; for tools: the peer uses the greeting's
  std::uint64_t reserved1[6];

  // Incoming: bytes that the peer sends to this side.
  alignas(64) Word tail;  // W: peer's sender, release (RING-TAIL): bytes ever written into the ring behind this page
  Word finished;          // W: peer's sender, release (FINISHED): 0, or 1 + the final tail: nothing will follow it
  std::uint64_t reserved2[6];

  // Outgoing: bytes that this side sends to the peer.
  alignas(64) Word head;  // W: peer's receiver, release (RING-HEAD): bytes ever read from the peer's ring
  Word closed;            // W: peer's receiver, release (CLOSED): not 0 when the peer will receive no more
  std::uint64_t reserved3[6];
};
static_assert(std::is_standard_layout_v<StreamPage>);
static_assert(sizeof(StreamPage) == 192 && sizeof(StreamPage) <= kStreamPageBytes);
static_assert(alignof(StreamPage) == 64);
static_assert(offsetof(StreamPage, version) == 0 && offsetof(StreamPage, capacity) == 8, "the owner's line");
static_assert(offsetof(StreamPage, tail) == 64 && offsetof(StreamPage, finished) == 72, "the peer's sender's line");
static_assert(offsetof(StreamPage, head) == 128 && offsetof(StreamPage, closed) == 136, "the peer's receiver's line");

/// What each side of a stream tells the other in the fabric's handshake. 64 bytes.
struct StreamGreeting {
  std::uint32_t magic;        // kStreamMagic
  std::uint32_t version;      // kStreamVersion
  std::uint64_t capacity;     // of the sender's own ring: a power of two
  std::uint64_t reserved[6];  // zero
};
static_assert(sizeof(StreamGreeting) == 64 && offsetof(StreamGreeting, magic) == 0);
static_assert(offsetof(StreamGreeting, version) == 4 && offsetof(StreamGreeting, capacity) == 8);
static_assert(offsetof(StreamGreeting, reserved) == 16);
static_assert(std::is_trivially_copyable_v<StreamGreeting>);

}  // namespace wherry::layout
