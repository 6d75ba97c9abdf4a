// SPDX-License-Identifier: Apache-2.0
// What the provider's endpoints write into each other's mailboxes: one packet is one message of the mailbox, a head
// and, for some operations, what follows it. Written by the sending endpoint, read by the receiving one, which checks
// each field. Both run on one machine, from builds that agree on kPacketVersion: the endpoint's name carries it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace wherry::mpi {

inline constexpr std::uint32_t kPacketVersion = 2;

enum class Operation : std::uint8_t {
  none = 0,  ///< never sent
  hello,     ///< the first packet of each side: `data` is the incarnation it expects; its own name follows
  eager,     ///< a message: the payload follows
  announce,  ///< a message that stays where it is until it is matched: a table of RemotePieces follows
  want,      ///< answers `announce`: stream the first `bytes` to the request `data`
  stream,    ///< answers `want`, one for each chunk: `request` is that number, `data` the chunk's offset; it follows
  done,  ///< answers `announce`, and `eager` with kWantsReply: the receiver has the data; `data` is 0 or an errno value
  press,    ///< the receiver holds too much that nothing was posted for: announce everything
  relieve,  ///< no longer
};

/// Bits of PacketHead::flags.
inline constexpr std::uint8_t kTagged = 1;
inline constexpr std::uint8_t kHasData = 2;     ///< `data` is the application's, for the receiver's completion
inline constexpr std::uint8_t kWantsReply = 4;  ///< the sender waits for `done`

struct PacketHead {
  Operation operation;     ///< what this is
  std::uint8_t flags;      ///< of the above
  std::uint16_t pieces;    ///< entries of the table that follows, at most kMostRemotePieces
  std::uint32_t reserved;  ///< 0
  std::uint64_t tag;
  std::uint64_t data;
  std::uint64_t bytes;  ///< of the whole payload; of `stream` of the chunk
  std::uint64_t
      request;  ///< the number by which the peer knows its request; of the sender, or in answers of the receiver
};
static_assert(sizeof(PacketHead) == 40 && alignof(PacketHead) == 8 && std::is_trivially_copyable_v<PacketHead>);
static_assert(offsetof(PacketHead, pieces) == 2 && offsetof(PacketHead, tag) == 8 && offsetof(PacketHead, data) == 16);
static_assert(offsetof(PacketHead, bytes) == 24 && offsetof(PacketHead, request) == 32);

inline constexpr std::size_t kMostRemotePieces = 4;

/// Private memory of the sender, for read_private.
struct RemotePiece {
  std::uint64_t address;
  std::uint64_t bytes;
};
static_assert(sizeof(RemotePiece) == 16 && std::is_trivially_copyable_v<RemotePiece>);

}  // namespace wherry::mpi
