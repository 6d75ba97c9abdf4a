// SPDX-License-Identifier: Apache-2.0
// The segments of the two sides of a connection between a publisher and a subscriber. The payload lies in the
// publisher's pool, which the subscriber maps read-only. Only its offset and length travel here.
//
//   the subscriber's:                                                     the publisher's:
//   0          64          128                4096                        0          64           4096
//   +----------+-----------+--------+-- ... --+-----------------+         +----------+------------+-- ... --+---------+
//   | header   | finished  | head   |         | queue of        |         | header   | closed     |         | returns |
//   |          | dropped   |        |         | MessageEntry    |         |          |            |         |         |
//   |          | wanted    |        |         |                 |         |          |            |         |         |
//   +----------+-----------+--------+-- ... --+-----------------+         +----------+------------+-- ... --+---------+
//     W: owner   W: publ.    W: both            W: publisher                W: owner   W: subscr.             W:
//     subscr.
//
// Both rings have as many places as the subscriber's greeting gives; the publisher's segment always has room for them.
// A place holds the number of the lap in which it was written, so the reader needs no counter to find out whether it is
// full. While both sides are awake, one cache line moves per message, and one back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint32_t kMessageVersion = 2;
inline constexpr std::uint32_t kMessageMagic = 0x47534d57;  // "WMSG" in memory, little-endian
inline constexpr std::size_t kMessagePageBytes = 4096;

/// One message in flight. The second word publishes the first. The lap is 1 + position / places, its low 24 bits.
struct MessageEntry {
  Word where;  // W: publisher; (offset in the pool / kMessageGrain) << 16 | ticket
  Word what;   // W: publisher, release (MESSAGE-ENTRY); lap << 40 | bytes
};
inline constexpr std::size_t kMessageGrain = 64;
inline constexpr unsigned kMessageTicketBits = 16;
inline constexpr unsigned kMessageLengthBits = 40;
inline constexpr std::size_t kMessageMaxQueue = std::size_t{1} << kMessageTicketBits;
inline constexpr std::size_t kMessageMaxPool = std::size_t{1} << (kMessageLengthBits - 1);
static_assert(sizeof(MessageEntry) == 16 && alignof(MessageEntry) == 8);
static_assert(offsetof(MessageEntry, where) == 0 && offsetof(MessageEntry, what) == 8);

struct MessageInbox {
  std::uint32_t version;  // W: owner, once; for tools
  std::uint32_t reserved0;
  std::uint64_t reserved1[7];

  alignas(64) Word finished;  // W: publisher, release (MESSAGE-FINISHED): 0, or 1 + the number of entries ever made
  Word dropped;               // W: publisher; messages that this subscriber lost to drop_oldest
  /// For a publisher that sleeps because it has no room: wake it when the count of all messages ever returned reaches
  /// this; 0: at any return. It is woken at the latest when no message waits here any more, or this side sleeps.
  Word wanted;  // W: publisher, before it sleeps
  std::uint64_t reserved2[5];

  /// Number of entries taken or dropped. Used with drop_oldest only, where both sides may take the oldest entry. The
  /// side that moves the head past an entry owns it.
  alignas(64) Word head;  // W: subscriber and publisher, compare-and-swap by one (MESSAGE-HEAD)
  std::uint64_t reserved3[7];
};
static_assert(std::is_standard_layout_v<MessageInbox>);
static_assert(sizeof(MessageInbox) == 192 && sizeof(MessageInbox) <= kMessagePageBytes);
static_assert(offsetof(MessageInbox, version) == 0 && offsetof(MessageInbox, finished) == 64, "the publisher's line");
static_assert(offsetof(MessageInbox, dropped) == 72 && offsetof(MessageInbox, wanted) == 80);
static_assert(offsetof(MessageInbox, head) == 128, "the line of both");

struct MessageOutbox {
  std::uint32_t version;  // W: owner, once; for tools
  std::uint32_t reserved0;
  std::uint64_t reserved1[7];

  alignas(64) Word closed;  // W: subscriber, release (MESSAGE-CLOSED): not 0: it will take no more messages
  std::uint64_t reserved2[7];
};
static_assert(std::is_standard_layout_v<MessageOutbox>);
static_assert(sizeof(MessageOutbox) == 128 && sizeof(MessageOutbox) <= kMessagePageBytes);
static_assert(offsetof(MessageOutbox, version) == 0 && offsetof(MessageOutbox, closed) == 64, "the subscriber's line");

/// One returned message, in the ring behind the publisher's page. W: subscriber, release (MESSAGE-RETURN):
/// lap << 16 | ticket.
using MessageReturn = Word;

enum class MessageRole : std::uint32_t { publisher = 1, subscriber = 2 };
enum class MessageOverflow : std::uint32_t { wait = 0, drop_oldest = 1 };

/// The greeting of each side in the fabric's handshake. 64 bytes.
struct MessageGreeting {
  std::uint32_t magic;        // kMessageMagic
  std::uint32_t version;      // kMessageVersion
  std::uint32_t role;         // MessageRole
  std::uint32_t overflow;     // MessageOverflow; 0 from a publisher
  std::uint64_t queue;        // places of its ring: a power of two, at most kMessageMaxQueue
  std::uint64_t reserved[5];  // zero
};
static_assert(sizeof(MessageGreeting) == 64 && std::is_trivially_copyable_v<MessageGreeting>);
static_assert(offsetof(MessageGreeting, magic) == 0 && offsetof(MessageGreeting, version) == 4);
static_assert(offsetof(MessageGreeting, role) == 8 && offsetof(MessageGreeting, overflow) == 12);
static_assert(offsetof(MessageGreeting, queue) == 16 && offsetof(MessageGreeting, reserved) == 24);

}  // namespace wherry::layout
