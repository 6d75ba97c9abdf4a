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
// Also the greeting that the two sides exchange while connecting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint32_t kStreamVersion = 4;
inline constexpr std::uint32_t kStreamMagic = 0x59524557;  // "WERY" in memory, little-endian
inline constexpr std::size_t kStreamPageBytes = 4096;

/// The words of split transfers: large transfers into the owner's buffer that bypass the ring. Both sides copy parts at
/// the same time, directly between the buffers of two blocked calls. stream/split_copy.hpp has the protocol.
struct SplitWords {
  // The invitation. W: owner's receiver, before it opens a deal: it wants the `bytes` from `position` of the ring's
  // count on at `address`. Before it accepts an offer: it takes the first `bytes` of the offer, and wants them at
  // `address`.
  Word invited_position;
  Word invited_address;  // in the owner's process
  Word invited_bytes;
  Word receiver_finished;  // W: owner's receiver, release (SPLIT-DONE): 4 * the deal's number + SplitEnding
  std::uint64_t reserved0[4];

  alignas(64) Word deal;  // W: both, compare-exchange (SPLIT-DEAL): 4 * number + SplitDeal
  Word pieces_taken;      // W: both, fetch-add, while accepted: pieces taken so far, of all deals
  std::uint64_t reserved1[6];

  // The offer. W: peer's sender, before it offers, or accepts an invitation: the stream continues at `position`, after
  // all earlier bytes of the ring, with the `bytes` that lie at `address`.
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

/// Open: there is an invitation. Offered: there is an offer. The next deal begins after one is closed, or is accepted
/// and finished by both sides. Its number is one more.
enum class SplitDeal : std::uint64_t { closed = 0, open = 1, accepted = 2, offered = 3 };

/// Part: this side copied all pieces that it took. Refused: it did not copy all of them, so the transfer is void. All
/// (receiver only): it copied every piece of the transfer, so the bytes are received whatever the sender's ending is.
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
  Word closed;            // W: peer's receiver, release (CLOSED): not 0: the peer will receive no more
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

/// The sender of the greeting has a page for windows behind its ring (layout/window_page.hpp).
inline constexpr std::uint64_t kStreamWindows = 1;

/// The greeting of each side of a stream in the fabric's handshake. 64 bytes.
struct StreamGreeting {
  std::uint32_t magic;     // kStreamMagic
  std::uint32_t version;   // kStreamVersion
  std::uint64_t capacity;  // of the sender's own ring: a power of two
  std::uint64_t features;  // kStreamWindows or 0; unknown bits are ignored
  std::uint64_t most;      // most bytes of the peer's ring that the sender of the greeting uses, from the ring's start:
                           // a power of two. It uses all of a smaller ring
  std::uint64_t reserved[4];  // zero
};
static_assert(sizeof(StreamGreeting) == 64 && offsetof(StreamGreeting, magic) == 0);
static_assert(offsetof(StreamGreeting, version) == 4 && offsetof(StreamGreeting, capacity) == 8);
static_assert(offsetof(StreamGreeting, features) == 16 && offsetof(StreamGreeting, most) == 24);
static_assert(std::is_trivially_copyable_v<StreamGreeting>);

}  // namespace wherry::layout
