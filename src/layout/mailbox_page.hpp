// SPDX-License-Identifier: Apache-2.0
// The segment of one side of a pair of mailboxes: words that the peer writes, then the section of this side's mailbox
// that the peer writes its messages into.
//
//   0          64                 128          192        256                                256 + granted       end
//   +----------+------------------+------------+----------+-------- ... ---------------------+------- ... -------+
//   | header   | tail, ack,       | head       | reserved | section: as much as is granted   | never touched     |
//   |          | finished, grant  |            |          |                                  |                   |
//   +----------+------------------+------------+----------+-------- ... ---------------------+------- ... -------+
//     W: owner   W: peer            W: peer                 W: peer
//
// Each side of a pair is one thread, so the peer's sender and its receiver may share a line: what the owner must see
// while messages flow is in one, and the credit, which is read only when room is short, in another.
//
// The section is a ring of bytes. A message in it: its length in a word at the next multiple of 8, then its bytes. A
// section's capacity changes only while it is empty: the owner stores a grant in the peer's page; the peer adopts it
// once everything it published was read, and says so in `ack` before its next tail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint32_t kMailboxVersion = 1;
inline constexpr std::uint32_t kMailboxMagic = 0x584f4257;  // "WBOX" in memory, little-endian
inline constexpr std::size_t kMailboxWordsBytes = 256;
inline constexpr std::size_t kMailboxLine = 64;                           // capacities are multiples
inline constexpr std::size_t kMailboxAlign = 8;                           // of where a message begins
inline constexpr std::uint64_t kMailboxLongest = std::uint64_t{1} << 62;  // bytes of a message

struct MailboxPage {
  std::uint32_t version;  // W: owner, once; for tools: the peer uses the greeting's
  std::uint32_t reserved0;
  std::uint64_t reserved1[7];

  alignas(64) Word tail;  // W: peer, release (MAILBOX-TAIL): bytes ever written into the section behind these words
  Word ack;               // W: peer, release (MAILBOX-ACK): the epoch of the grant in use, before the next tail
  Word finished;          // W: peer, release (MAILBOX-FINISHED): 0, or 1 + the final tail: nothing will follow it
  Word grant;             // W: peer, release (MAILBOX-GRANT): epoch << 32 | lines of the owner's section in the peer's
                          // segment; 0: none yet
  std::uint64_t reserved2[4];

  alignas(64) Word head;  // W: peer, release (MAILBOX-HEAD): bytes ever read from the owner's section in the peer's
  std::uint64_t reserved3[7];

  std::uint64_t reserved4[8];
};
static_assert(std::is_standard_layout_v<MailboxPage> && alignof(MailboxPage) == 64);
static_assert(sizeof(MailboxPage) == kMailboxWordsBytes && kMailboxWordsBytes % kMailboxLine == 0);
static_assert(offsetof(MailboxPage, version) == 0, "the owner's line");
static_assert(offsetof(MailboxPage, tail) == 64 && offsetof(MailboxPage, ack) == 72);
static_assert(offsetof(MailboxPage, finished) == 80 && offsetof(MailboxPage, grant) == 88);
static_assert(offsetof(MailboxPage, head) == 128, "the credit has a line of its own");

/// What each side tells the other in the fabric's handshake. 64 bytes.
struct MailboxGreeting {
  std::uint32_t magic;    // kMailboxMagic
  std::uint32_t version;  // kMailboxVersion
  std::uint64_t mailbox;  // random: another mailbox has another number, also at the same address
  std::uint32_t header;   // bytes of a section that the peer always has in the sender's mailbox
  std::uint16_t listens;  // not 0: at node and port
  std::uint16_t node;
  std::uint16_t port;
  std::uint16_t reserved0[3];
  std::uint64_t reserved[4];  // zero
};
static_assert(sizeof(MailboxGreeting) == 64 && offsetof(MailboxGreeting, magic) == 0);
static_assert(offsetof(MailboxGreeting, version) == 4 && offsetof(MailboxGreeting, mailbox) == 8);
static_assert(offsetof(MailboxGreeting, header) == 16 && offsetof(MailboxGreeting, listens) == 20);
static_assert(offsetof(MailboxGreeting, node) == 22 && offsetof(MailboxGreeting, port) == 24);
static_assert(offsetof(MailboxGreeting, reserved) == 32);
static_assert(std::is_trivially_copyable_v<MailboxGreeting>);

}  // namespace wherry::layout
