// SPDX-License-Identifier: Apache-2.0
// What the provider's endpoints write into each other's mailboxes: one packet is one message of the mailbox, a head
// and, for some operations, what follows it. Written by the sending endpoint, read by the receiving one, which checks
// each field. Both run on one machine, from builds that agree on kPacketVersion: the endpoint's name carries it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::mpi {

inline constexpr std::uint32_t kPacketVersion = 5;

/// Of an endpoint's name.
inline constexpr std::size_t kNameBytes = 64;

enum class Operation : std::uint8_t {
  none = 0,     ///< never sent
  hello,        ///< the first packet of each side: `data` is the incarnation it expects; its own name follows
  short_eager,  ///< as `eager`, of a head of kShortHead bytes: the packet's length tells that of the payload
  eager,        ///< a message: the payload follows
  announce,     ///< a message that stays where it is until it is matched: a table of RemotePieces follows
  want,         ///< answers announcements and `grant`: stream the first `bytes` to the transfer `data`
  stream,       ///< answers `want`, one for each chunk: `request` is that number, `data` the chunk's offset; it follows
  done,         ///< answers announcements, `grant`, and `eager` with kWantsReply: the receiver has it; `data`: an errno
                ///< value or 0
  stop_eager,   ///< the receiver holds too much that nothing was posted for: announce everything
  resume_eager,  ///< no longer

  // One-sided, into and out of memory that the receiver has registered: a table of RemoteRanges says where. The
  // receiver checks each, and does what is asked only if all are allowed.
  write,           ///< the payload follows; answered by `accessed`
  announce_write,  ///< the payload stays where it is: a table of RemotePieces before that of ranges; `want` or `done`
  read,            ///< answered by `reply`, by `grant` if it is long, or, where it is not allowed, by `accessed`
  atomic,          ///< operands follow, then comparands; answered by `accessed`, with kFetches by `reply`
  accessed,        ///< answers those three: `data` is 0 or an errno value
  reply,           ///< answers `read` and `atomic`: the payload follows
  grant,           ///< answers `read`: a table of RemotePieces, to be read there or wanted; `data` is its own number

  count,  ///< of operations
};

/// Bits of PacketHead::flags.
inline constexpr std::uint8_t kTagged = 1;
inline constexpr std::uint8_t kHasData = 2;     ///< `data` is the application's, for the receiver's completion
inline constexpr std::uint8_t kWantsReply = 4;  ///< the sender waits for `done`
inline constexpr std::uint8_t kReaches = 8;     ///< the sender can read the receiver's private memory
inline constexpr std::uint8_t kFetches = 16;    ///< the sender wants the values from before

struct PacketHead {
  Operation operation;    ///< what this is
  std::uint8_t flags;     ///< of the above
  std::uint16_t pieces;   ///< entries of the table that follows, at most kMostRemotePieces
  std::uint8_t ranges;    ///< entries of the table of RemoteRanges, at most kMostRemoteRanges
  std::uint8_t datatype;  ///< of `atomic`: an fi_datatype
  std::uint8_t action;    ///< of `atomic`: an fi_op
  std::uint8_t reserved;  ///< 0
  std::uint64_t tag;
  std::uint64_t data;
  /// Of the whole payload; of `stream` of the chunk; of `read` and `atomic` of the memory that the ranges name.
  std::uint64_t bytes;
  std::uint64_t
      request;  ///< the number by which the peer knows its request; of the sender, or in answers of the receiver
};
static_assert(sizeof(PacketHead) == 40 && alignof(PacketHead) == 8 && std::is_trivially_copyable_v<PacketHead>);
static_assert(offsetof(PacketHead, pieces) == 2 && offsetof(PacketHead, tag) == 8 && offsetof(PacketHead, data) == 16);
static_assert(offsetof(PacketHead, bytes) == 24 && offsetof(PacketHead, request) == 32);

/// Of a short message, so that with a payload of 16 bytes it moves one line.
inline constexpr std::size_t kShortHead = offsetof(PacketHead, bytes);

inline constexpr std::size_t kMostRemotePieces = 4;

/// Private memory of the sender, for read_private.
struct RemotePiece {
  std::uint64_t address;
  std::uint64_t bytes;
};
static_assert(sizeof(RemotePiece) == 16 && std::is_trivially_copyable_v<RemotePiece>);

inline constexpr std::size_t kMostRemoteRanges = 4;
/// Bytes of the memory that one `atomic` names.
inline constexpr std::size_t kMostAtomicBytes = 4096;

/// Registered memory of the receiver.
struct RemoteRange {
  std::uint64_t address;  ///< from the region's beginning, or as that was registered
  std::uint64_t bytes;
  std::uint64_t key;
};
static_assert(sizeof(RemoteRange) == 24 && std::is_trivially_copyable_v<RemoteRange>);

}  // namespace wherry::mpi
