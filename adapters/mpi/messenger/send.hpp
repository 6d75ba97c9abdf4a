// SPDX-License-Identifier: Apache-2.0
// A packet on its way, and what is known of the request that it stands for until its completion is reported.
#pragma once

#include <sys/uio.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <wherry/mailbox.hpp>

#include "adapters/mpi/layout/packet.hpp"
#include "buffers.hpp"
#include "list.hpp"
#include "name.hpp"
#include "pool.hpp"

namespace wherry::mpi {

struct Link;
struct Region;

struct Send : Hook, Pooled {
  enum class Kind : std::uint8_t { message, control, remote };

  /// What goes before the payload: the head, and behind it the table of an announcement, the ranges of a one-sided
  /// operation, or the name of a hello.
  struct Wire {
    PacketHead head;
    std::array<RemotePiece, kMostRemotePieces> table;
    std::array<RemoteRange, kMostRemoteRanges> ranges;  ///< room for them: they begin where the table ends
  };
  static_assert(sizeof(Wire) >= sizeof(PacketHead) + kNameBytes);

  Link* to;
  void* context;
  Kind kind;
  bool tagged;
  bool wanted;        ///< its completion is to be reported
  bool awaits;        ///< complete only when the peer has answered
  bool inject;        ///< the caller's memory is not used after the call
  bool is_injection;  ///< one of those that the messenger limits
  Wire wire;
  std::size_t wire_bytes;
  Buffers buffers;
  Buffers result;                                  ///< of a one-sided operation: where what it fetches goes
  std::uint64_t report;                            ///< of a one-sided operation: its completion's flags
  std::array<Region*, kMostRemoteRanges> regions;  ///< whose memory the buffers are, of an answer to `read`
  std::unique_ptr<std::byte[]> copy;
  std::uint64_t streamed;      ///< bytes of the payload in the chunks prepared so far, once the peer wants them
  std::uint64_t wanted_bytes;  ///< of those that the peer wants
  bool over;                   ///< the peer needs no more of it; complete once the chunk under way has left
  int outcome;                 ///< what it then is complete with: 0 or an errno value
  std::uint64_t kept;          ///< bytes of an announced payload that is complete once announced: 0, or all of it
  bool reported;               ///< its completion
  std::array<iovec, kMostBuffers + 1> pieces;
  Mailbox::Outgoing outgoing;

  void reset();
  /// The message of the mailbox: the wire's first bytes, and the buffers if it carries its payload.
  void prepare(std::size_t bytes_of_wire, bool carries_payload);
  /// The next chunk of what the peer wants: the wire's head, and `most` bytes of the buffers, or fewer where a range
  /// ends.
  void prepare_chunk(std::uint64_t most);
  /// The table of where the payload lies, for an announcement.
  void describe_payload();
  /// The table of ranges, after that of where the payload lies.
  void name_ranges(std::span<const RemoteRange> ranges);
  [[nodiscard]] std::size_t head_bytes() const;
  /// From now on the payload is a copy of the caller's memory.
  void copy_payload();
};

}  // namespace wherry::mpi
