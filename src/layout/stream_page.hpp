// SPDX-License-Identifier: Apache-2.0
// The segment of one side of a stream: a page of words that the peer writes, then the ring that the peer writes into.
//
//   0          64                  128                 192                    384        4096             4096 +
//   capacity
//   +----------+-------------------+-------------------+----------------------+-- ... ---+----- ... -------+
//   | header   | incoming          | outgoing          | large transfers      | reserved | incoming ring   |
//   |          | tail, finished    | head, closed      | invitation,deal,offer|          |                 |
//   +----------+-------------------+-------------------+----------------------+-- ... ---+----- ... -------+
//     W: owner   W: peer's sender    W: peer's receiver  W: owner, both, peer              W: peer's sender
//
// and what the two sides tell each other while connecting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint32_t kStreamVersion = 4;
inline constexpr std::uint32_t kStreamMagic = 0x59524557;  // "WERY" in memory, little-endian
inline constexpr std::size_t kStreamPageBytes = 4096;

/// A large transfer into the owner's buffer that bypasses the ring: both sides copy parts of it at once, straight
/// between the buffers of two blocked calls (stream/split_copy.hpp tells how they agree).
struct SplitWords {
  // The invitation. W: owner's receiver, before it opens a deal: "the byte at `position` of the ring's count, and the
  // `bytes` from there on, belong at `address`". Before it accepts an offer: "of that, the first `bytes`; at
  // `address`".
  Word invited_position;
  Word invited_address;  // in the owner's process
  Word invited_bytes;
  Word receiver_finished;  // W: owner's receiver, release (SPLIT-DONE): 4 * the deal's number + SplitEnding
  std::uint64_t reserved0[4];

  alignas(64) Word deal;  // W: both, compare-exchange (SPLIT-DEAL): 4 * number + SplitDeal
  Word pieces_taken;      // W: both, fetch-add, while accepted: pieces taken on so far, of all deals
  std::uint64_t reserved1[6];

  // The offer. W: peer's sender, before it offers, or accepts an invitation: "at `position`, when the ring before it is
  // empty, stand the `bytes` that lie at `address`".
  alignas(64) Word offered_position;
  Word offered_address;  // in the peer's process
  Word offered_bytes;
  Word sender_finished;  // W: peer's sender, release (SPLIT-DONE): as receiver_finished
  std::uint64_t reserved2[4];
};
static_assert(sizeof(SplitWords) == 192 && alignof(SplitWords) == 64);
static_assert(offsetof(SplitWords, invited_position) == 0 && offsetof(SplitWords, invited_address) == 8);
static_assert(offsetof(SplitWords, invited_bytes) == 16 && offsetof(SplitWords, receiver_finished) == 24);
static_assert(offsetof(SplitWords, deal) == 64 && offsetof(SplitWords, pieces_taken) == 72, "a line that both write");
static_assert(offsetof(SplitWords, offered_position) == 128 && offsetof(SplitWords, offered_address) == 136);
static_assert(offsetof(SplitWords, offered_bytes) == 144 && offsetof(SplitWords, sender_finished) == 152);

/// Open: an invitation stands. Offered: an offer stands. The next deal begins where one is closed, or accepted and
/// finished by both; its number is one more.
enum class SplitDeal : std::uint64_t { closed = 0, open = 1, accepted = 2, offered = 3 };

/// Part: this side copied the pieces it took. Refused: not all of them, and the transfer is void. All, of the receiver
/// only: it took every piece, and the bytes are received whatever the sender says.
enum class SplitEnding : std::uint64_t { part = 0, refused = 1, all = 2 };

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

  SplitWords split;
};
static_assert(std::is_standard_layout_v<StreamPage>);
static_assert(offsetof(StreamPage, split) == 192);
static_assert(sizeof(StreamPage) == 384 && sizeof(StreamPage) <= kStreamPageBytes);
static_assert(alignof(StreamPage) == 64);
static_assert(offsetof(StreamPage, version) == 0 && offsetof(StreamPage, capacity) == 8, "the owner's line");
static_assert(offsetof(StreamPage, tail) == 64 && offsetof(StreamPage, finished) == 72, "the peer's sender's line");
static_assert(offsetof(StreamPage, head) == 128 && offsetof(StreamPage, closed) == 136, "the peer's receiver's line");

/// Behind its ring the sender of the greeting has a page for windows (layout/window_page.hpp).
inline constexpr std::uint64_t kStreamWindows = 1;

/// What each side of a stream tells the other in the fabric's handshake. 64 bytes.
struct StreamGreeting {
  std::uint32_t magic;     // kStreamMagic
  std::uint32_t version;   // kStreamVersion
  std::uint64_t capacity;  // of the sender's own ring: a power of two
  std::uint64_t features;  // kStreamWindows or 0; bits that are not known here mean nothing
  std::uint64_t most;      // of the peer's ring the sender of this uses the first so many bytes: a power of two. If the
                           // ring is smaller, all of it
  std::uint64_t reserved[4];  // zero
};
static_assert(sizeof(StreamGreeting) == 64 && offsetof(StreamGreeting, magic) == 0);
static_assert(offsetof(StreamGreeting, version) == 4 && offsetof(StreamGreeting, capacity) == 8);
static_assert(offsetof(StreamGreeting, features) == 16 && offsetof(StreamGreeting, most) == 24);
static_assert(std::is_trivially_copyable_v<StreamGreeting>);

}  // namespace wherry::layout
