// SPDX-License-Identifier: Apache-2.0
// The segment of one side of a pair of mailboxes: words that the peer writes, then the section of this side's mailbox
// that the peer writes its messages into.
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
// Each side of a pair is one thread, so the peer's sender and its receiver may share a line: what changes with every
// message is in one, the credit, which is read only when room is short, in another, and what hardly ever changes in a
// third.
//
// The section is a ring of bytes. A message in it: its length in a word at the next multiple of 8, then its bytes. A
// section's capacity changes only while it is empty: the owner stores a grant in the peer's page; the peer adopts it
// once everything it published was read, and says so in `ack` before its next tail.
//
// A short message may lie beside the tail instead, so that one line carries all of it: positions and credit are as if
// it lay in the section, whose bytes are then not written. `inlined` names the position of its length, and is stored
// before the tail that publishes it. The place is free again once that message is read.
//
// Where everything was read the writer may go on at the start of the section, so that what is used of it stays in the
// caches and costs no further pages: `inlined` then has, in place of a length, the mark that the message at its
// position lies there. Positions and credit go on as before.
//
// Where the section is full and the receiver does not read, whole messages may go on in the overflow: the memory behind
// the section, up to what the owner's greeting says of both together. The peer names the position from which on its
// bytes lie there in `overflow`, before its next tail, and fills that memory once, from the front. It comes back to the
// section's start, and stores 0, once everything was read. `ack` may change then, too, but not before.
//
// Early data: what a side sends before the peer has granted it a section lies in its own segment, in the last bytes of
// it, as many as its greeting says: messages one behind the other, each its length in a word and then its bytes, filled
// up to a multiple of 8. `early` counts the bytes, which never change; the owner adds a message by a compare-exchange.
// The peer claims them by setting the lowest bit: what is there then is its, and the owner adds no more. The owner may
// set it, too, and takes back what the peer has not claimed. Whichever sets the bit has the bytes, so each message
// arrives once. A side claims before its first grant, so that early data come before what the section has; and once
// more when the owner's first grant has come, as the owner may have put there what it had taken back elsewhere since.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint32_t kMailboxVersion = 5;
inline constexpr std::uint32_t kMailboxMagic = 0x584f4257;  // "WBOX" in memory, little-endian
inline constexpr std::size_t kMailboxWordsBytes = 320;
inline constexpr std::size_t kMailboxLine = 64;                           // capacities are multiples
inline constexpr std::size_t kMailboxAlign = 8;                           // of where a message begins
inline constexpr std::uint64_t kMailboxLongest = std::uint64_t{1} << 62;  // bytes of a message
inline constexpr std::uint64_t kMailboxKeptPages = 1ULL << 32;            // in `ack`: the owner may give back pages
inline constexpr std::size_t kMailboxInlined = 104;                       // bytes of an inlined message, at most
inline constexpr std::size_t kMailboxEarly = std::size_t{320} << 10;      // bytes of early data, at most
inline constexpr std::uint64_t kMailboxEarlyClaimed = 1;                  // in `early`: one side has the bytes
inline constexpr std::uint64_t kMailboxEarlyEnds = 2;                     // in `early`: the owner has closed in order

struct MailboxPage {
  std::uint32_t version;  // W: owner, once; for tools: the peer uses the greeting's
  std::uint32_t reserved0;
  Word early;  // W: both, release (MAILBOX-EARLY): bytes of early data, a multiple of 8, and two flags
  std::uint64_t reserved1[6];

  alignas(64) Word ack;  // W: peer, release (MAILBOX-ACK): epoch of the grant in use, a flag; before the next tail
  Word finished;         // W: peer, release (MAILBOX-FINISHED): 0, or 1 + the final tail: nothing will follow it
  Word grant;            // W: peer, release (MAILBOX-GRANT): epoch << 32 | lines of the owner's section in the peer's
                         // segment; 0: none yet
  Word overflow;         // W: peer, release (MAILBOX-OVERFLOW): 0: it writes into the section; else 1 + the position
                         // from which on it writes behind the section
  std::uint64_t reserved2[4];

  alignas(64) Word head;  // W: peer, release (MAILBOX-HEAD): bytes ever read from the owner's section in the peer's
  std::uint64_t reserved3[7];

  alignas(64) Word tail;  // W: peer, release (MAILBOX-TAIL): bytes ever written into the section behind these words
  Word seen;              // W: peer, release (MAILBOX-SEEN): a head in passing, with a tail; may be older than `head`
  Word inlined;  // W: peer, before the tail: position << 4 | 1 + length of the message in the bytes that follow, or
                 // kMailboxRestart, as far as it has 64 bits; 0: none yet
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
/// Bytes of a section that lie in the page of the words, where the segment is compact.
inline constexpr std::size_t kMailboxFirstPage = kBellPageBytes - segment_place(true) - kMailboxWordsBytes;

inline constexpr std::size_t kMailboxRestart = 126;
static_assert(kMailboxInlined < kMailboxRestart && kMailboxRestart + 1 < 128, "there are 7 bits for it");

/// What `inlined` is for a message whose length is at `position`, a multiple of kMailboxAlign.
constexpr std::uint64_t mailbox_inlined(std::uint64_t position, std::size_t length) {
  return position << 4 | (length + 1);
}
static_assert(kMailboxAlign << 4 == 128, "the bits below a position's are the length's");

/// Bytes of the overflow behind a section of `capacity` bytes, where both may have `most`. `room` is the memory's.
constexpr std::size_t mailbox_overflow(std::size_t capacity, std::size_t most, std::size_t room) {
  most = std::min(most, room);
  return most > capacity ? most - capacity : 0;
}
/// Of them, how many can be written from this position on: the last line stays free.
constexpr std::size_t mailbox_overflow_room(std::size_t bytes, std::uint64_t position) {
  const std::size_t around = kMailboxLine + static_cast<std::size_t>(position % kMailboxAlign);
  return bytes > around ? bytes - around : 0;
}

/// What each side tells the other in the fabric's handshake. 64 bytes.
struct MailboxGreeting {
  std::uint32_t magic;    // kMailboxMagic
  std::uint32_t version;  // kMailboxVersion
  std::uint64_t mailbox;  // random: another mailbox has another number, also at the same address
  std::uint32_t header;   // bytes of a section that the peer always has in the sender's mailbox
  std::uint16_t listens;  // not 0: at node and port
  std::uint16_t node;
  std::uint16_t port;
  std::uint16_t reserved0;
  std::uint32_t overflow;     // bytes that a section and the overflow behind it have together; 0: there is no overflow
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
