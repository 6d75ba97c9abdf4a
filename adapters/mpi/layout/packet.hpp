// SPDX-License-Identifier: Apache-2.0
// Packets between the provider's endpoints. One packet is one mailbox message: a head, then whatever the operation
// needs. The sending endpoint writes it; the receiving endpoint checks each field. Both run on one machine, from builds
// with equal kPacketVersion, which is part of an endpoint's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::mpi {

inline constexpr std::uint32_t kPacketVersion = 5;

/// Bytes of an endpoint's name.
inline constexpr std::size_t kNameBytes = 64;

enum class Operation : std::uint8_t {
  none = 0,     ///< never sent
  hello,        ///< the first packet of each side: `data` is the incarnation it expects; its own name follows
  short_eager,  ///< an `eager` with a head of kShortHead bytes: the packet's length gives the payload's
  eager,        ///< a message: the payload follows
  announce,     ///< rendezvous: the payload stays with the sender until it is matched; RemotePieces follow
  want,         ///< answers announcements and `grant`: asks for the first `bytes`, streamed to the transfer `data`
  stream,  ///< answers `want`, once for each chunk, which follows: `request` is that number, `data` the chunk's offset
  done,    ///< ends an announcement, a `grant`, or an `eager` with kWantsReply: `data` is 0 or an errno value
  stop_eager,    ///< back-pressure: the receiver holds too many unexpected messages; announce everything
  resume_eager,  ///< ends `stop_eager`

  // One-sided operations on memory that the receiver has registered. A table of RemoteRanges names the memory. The
  // receiver checks each range, and carries the operation out only if all are allowed.
  write,           ///< the payload follows; answered by `accessed`
  announce_write,  ///< the payload stays with the sender: RemotePieces, then the ranges; answered by `want` or `done`
  read,            ///< answered by `reply`, if it is long by `grant`; by `accessed` if it is refused or empty
  atomic,    ///< operands follow, then comparands; answered by `accessed`; with kFetches by `reply` if it is allowed
  accessed,  ///< answers `write`, `read` and `atomic`: `data` is 0 or an errno value
  reply,     ///< answers `read` and `atomic`: the payload follows
  grant,     ///< answers a long `read`: RemotePieces, to be read there or asked for by `want`; `data` is the offer's
             ///< number

  count,  ///< number of operations
};

/// Bits of PacketHead::flags.
inline constexpr std::uint8_t kTagged = 1;
inline constexpr std::uint8_t kHasData = 2;     ///< `data` is the application's, for the receiver's completion
inline constexpr std::uint8_t kWantsReply = 4;  ///< the sender waits for `done`
inline constexpr std::uint8_t kReaches = 8;     ///< the sender can read the receiver's private memory
inline constexpr std::uint8_t kFetches = 16;    ///< the sender wants the values from before the operation

struct PacketHead {
  Operation operation;
  std::uint8_t flags;     ///< kTagged to kFetches
  std::uint16_t pieces;   ///< entries of the table of RemotePieces, at most kMostRemotePieces
  std::uint8_t ranges;    ///< entries of the table of RemoteRanges, at most kMostRemoteRanges
  std::uint8_t datatype;  ///< of `atomic`: an fi_datatype
  std::uint8_t action;    ///< of `atomic`: an fi_op
  std::uint8_t reserved;  ///< 0
  std::uint64_t tag;
  std::uint64_t data;
  /// Length of the whole payload; of `stream`, of the chunk; of `read` and `atomic`, of the memory that the ranges
  /// name.
  std::uint64_t bytes;
  std::uint64_t request;  ///< the requester's number for the request; answers carry it back
};
static_assert(sizeof(PacketHead) == 40 && alignof(PacketHead) == 8 && std::is_trivially_copyable_v<PacketHead>);
static_assert(offsetof(PacketHead, pieces) == 2 && offsetof(PacketHead, tag) == 8 && offsetof(PacketHead, data) == 16);
static_assert(offsetof(PacketHead, bytes) == 24 && offsetof(PacketHead, request) == 32);

/// Head of a short message: with a payload of 16 bytes the message moves one cache line.
inline constexpr std::size_t kShortHead = offsetof(PacketHead, bytes);

inline constexpr std::size_t kMostRemotePieces = 4;

/// A range of the sender's private memory, for Mailbox::read_private.
struct RemotePiece {
  std::uint64_t address;
  std::uint64_t bytes;
};
static_assert(sizeof(RemotePiece) == 16 && std::is_trivially_copyable_v<RemotePiece>);

inline constexpr std::size_t kMostRemoteRanges = 4;
/// Bytes of memory that one `atomic` may name.
inline constexpr std::size_t kMostAtomicBytes = 4096;

/// A range of the receiver's registered memory.
struct RemoteRange {
  std::uint64_t address;  ///< from the region's first byte, or with FI_MR_BASIC the target's virtual address
  std::uint64_t bytes;
  std::uint64_t key;
};
static_assert(sizeof(RemoteRange) == 24 && std::is_trivially_copyable_v<RemoteRange>);

}  // namespace wherry::mpi
