// SPDX-License-Identifier: Apache-2.0
// The segment of one side of a pair of mailboxes: words that the peer writes, then the section of this side's mailbox,
// into which the peer writes its messages.
//
//   0          64                 128        192                 256            320                320 + granted
//   +----------+------------------+----------+---------------------------------+-------- ... -----+------- ... -------+
//   | header   | ack, finished,   | head     | tail, seen, inlined,            | section: as much | never touched     |
//   |          | grant            |          | the inlined message's bytes     | as is granted    |                   |
//   +----------+------------------+----------+---------------------------------+-------- ... -----+------- ... -------+
//     W: owner   W: peer            W: peer    W: peer                           W: peer
//
// The header has the version and the word of the early data, which follow the section's memory.
//
// Cache lines: one thread runs each side of a pair, so the words of the peer's sender and receiver may share a line.
// One line has the words that change with every message. Another has the credit, which is read only when room is short.
// A third has the words that rarely change.
//
// Section: a ring of bytes. A message begins at the next multiple of 8 with its length in a word; its bytes follow. The
// capacity changes only while the section is empty. The owner stores a grant in the peer's page. The peer adopts the
// grant once all that it published was read, and stores its epoch in `ack` before its next tail.
//
// Inlined message: a short message may lie beside the tail instead, so that one cache line carries all of it. Positions
// and credit count as if it lay in the section, but the section's bytes are not written. `inlined` has the position of
// its length, and is stored before the tail that publishes it. The place is free again once the message was read.
//
// Restart: if everything was read, the writer may continue at the start of the section. The used part then stays in the
// caches, and no further pages are touched. `inlined` has the position of the next message and, instead of a length,
// kMailboxRestart. Positions and credit continue as before.
//
// Overflow: a second ring of bytes behind the section, of a size that the owner's greeting gives. If the section is
// full and the receiver does not read, whole messages may go there. Before its next tail, the peer stores in `overflow`
// the position from which its bytes lie there. Once everything was read, it returns to the section's start and stores
// 0. While it is in the overflow, it may adopt a grant once everything in the section was read. `ack` then has
// kMailboxInOverflow, and the overflow stays where it is until the peer leaves it.
//
// Early data: the messages that a side sends before the peer has granted it a section. They lie at the end of its own
// segment, in as many bytes as its greeting gives. Each is its length in a word, then its bytes, padded to a multiple
// of 8.
//  - `early` counts the bytes, which never change. The owner adds a message by a compare-exchange.
//  - The peer claims the bytes by setting the lowest bit. They are then the peer's, and the owner adds no more.
//  - The owner may set the bit too, and takes back the bytes that the peer has not claimed. The side that sets the bit
//    first has the bytes, so each message arrives once.
//  - A side claims before its first grant, so that early data precede the bytes of the section. It claims once more
//    after the owner's first grant: the owner may have added messages that it had withdrawn from another connection.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint32_t kMailboxVersion = 6;
inline constexpr std::uint32_t kMailboxMagic = 0x584f4257;  // "WBOX" in memory, little-endian
inline constexpr std::size_t kMailboxWordsBytes = 320;
inline constexpr std::size_t kMailboxLine = 64;                           // capacities are multiples
inline constexpr std::size_t kMailboxAlign = 8;                           // alignment of a message's start
inline constexpr std::uint64_t kMailboxLongest = std::uint64_t{1} << 62;  // bytes of a message
inline constexpr std::uint64_t kMailboxKeptPages = 1ULL << 32;            // in `ack`: the owner returns the pages
inline constexpr std::uint64_t kMailboxInOverflow = 2ULL << 32;           // in `ack`: it was stored in the overflow
inline constexpr std::size_t kMailboxInlined = 104;                       // bytes of an inlined message, at most
inline constexpr std::size_t kMailboxEarly = std::size_t{320} << 10;      // bytes of early data, at most
inline constexpr std::uint64_t kMailboxEarlyClaimed = 1;                  // in `early`: one side has the bytes
inline constexpr std::uint64_t kMailboxEarlyEnds = 2;                     // in `early`: the owner has closed in order

struct MailboxPage {
  std::uint32_t version;  // W: owner, once; for tools: the peer uses the greeting's
  std::uint32_t reserved0;
  Word early;  // W: both, release (MAILBOX-EARLY): bytes of early data, a multiple of 8, and two flags
  std::uint64_t reserved1[6];

  alignas(64) Word ack;  // W: peer, release (MAILBOX-ACK): epoch of the grant in use, flags; before the next tail
  Word finished;         // W: peer, release (MAILBOX-FINISHED): 0, or 1 + the final tail: nothing will follow it
  Word grant;            // W: peer, release (MAILBOX-GRANT): epoch << 32 | lines of the owner's section in the peer's
                         // segment; 0: none yet
  Word overflow;         // W: peer, release (MAILBOX-OVERFLOW): 0: it writes into the section; else 1 + the position
                         // from which on it writes behind the section
  std::uint64_t reserved2[4];

  alignas(64) Word head;  // W: peer, release (MAILBOX-HEAD): bytes ever read from the owner's section in the peer's
  std::uint64_t reserved3[7];

  alignas(64) Word tail;  // W: peer, release (MAILBOX-TAIL): bytes ever written into the section behind these words
  Word seen;              // W: peer, release (MAILBOX-SEEN): as `head`, stored along with a tail; may be older or newer
  Word inlined;  // W: peer, before the tail: the low 64 bits of position << 4 | 1 + length of the message in the bytes
                 // that follow, or 1 + kMailboxRestart instead; 0: none yet
  std::byte inlined_bytes[kMailboxInlined];  // W: peer, before `inlined`
};
static_assert(std::is_standard_layout_v<MailboxPage> && alignof(MailboxPage) == 64);
static_assert(sizeof(MailboxPage) == kMailboxWordsBytes && kMailboxWordsBytes % kMailboxLine == 0);
static_assert(offsetof(MailboxPage, version) == 0 && offsetof(MailboxPage, early) == 8);
static_assert(offsetof(MailboxPage, ack) == 64 && offsetof(MailboxPage, finished) == 72);
static_assert(offsetof(MailboxPage, grant) == 80 && offsetof(MailboxPage, overflow) == 88);
static_assert(offsetof(MailboxPage, head) == 128, "the credit has a line of its own");
static_assert(offsetof(MailboxPage, tail) == 192 && offsetof(MailboxPage, seen) == 200);
static_assert(offsetof(MailboxPage, inlined) == 208 && offsetof(MailboxPage, inlined_bytes) == 216);
/// Bytes of the section that lie in the page of the words, if the segment is compact.
inline constexpr std::size_t kMailboxFirstPage = kBellPageBytes - segment_place(true) - kMailboxWordsBytes;

/// Stands for a length in `inlined`: the message at that position lies at the start of the section.
inline constexpr std::size_t kMailboxRestart = 126;
static_assert(kMailboxInlined < kMailboxRestart && kMailboxRestart + 1 < 128, "there are 7 bits for it");

/// Returns the value of `inlined` for a message whose length is at `position`, a multiple of kMailboxAlign.
constexpr std::uint64_t mailbox_inlined(std::uint64_t position, std::size_t length) {
  return position << 4 | (length + 1);
}
static_assert(kMailboxAlign << 4 == 128, "the bits below a position's are the length's");

/// Returns the bytes of the overflow behind a section of `capacity` bytes: `most`, or what is left of `room`, the size
/// of the memory of both. A multiple of kMailboxLine.
constexpr std::size_t mailbox_overflow(std::size_t capacity, std::size_t most, std::size_t room) {
  const std::size_t left = room > capacity ? room - capacity : 0;
  return std::min(most, left) / kMailboxLine * kMailboxLine;
}

/// The greeting of each side in the fabric's handshake. 64 bytes.
struct MailboxGreeting {
  std::uint32_t magic;    // kMailboxMagic
  std::uint32_t version;  // kMailboxVersion
  std::uint64_t mailbox;  // random number of the mailbox: it differs from that of a later one at the same address
  std::uint32_t header;   // bytes of the section that the peer always has in the sender's mailbox
  std::uint16_t listens;  // not 0: the mailbox listens at node and port
  std::uint16_t node;
  std::uint16_t port;
  std::uint16_t reserved0;
  std::uint32_t overflow;     // bytes of the overflow behind a section; 0: no overflow
  std::uint32_t early;        // bytes for early data at the end of the sender's segment, a multiple of 8; 0: none
  std::uint32_t claims;       // not 0: the sender claims the early data of its peers
  std::uint64_t reserved[3];  // zero
};
static_assert(sizeof(MailboxGreeting) == 64 && offsetof(MailboxGreeting, magic) == 0);
static_assert(offsetof(MailboxGreeting, version) == 4 && offsetof(MailboxGreeting, mailbox) == 8);
static_assert(offsetof(MailboxGreeting, header) == 16 && offsetof(MailboxGreeting, listens) == 20);
static_assert(offsetof(MailboxGreeting, node) == 22 && offsetof(MailboxGreeting, port) == 24);
static_assert(offsetof(MailboxGreeting, overflow) == 28 && offsetof(MailboxGreeting, early) == 32);
static_assert(offsetof(MailboxGreeting, claims) == 36 && offsetof(MailboxGreeting, reserved) == 40);
static_assert(std::is_trivially_copyable_v<MailboxGreeting>);

}  // namespace wherry::layout
