// SPDX-License-Identifier: Apache-2.0
// What a messenger knows of one other endpoint, and of a packet that arrives from it. The parts of a Link belong to the
// classes that their comments name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <wherry/mailbox.hpp>

#include "adapters/mpi/layout/packet.hpp"
#include "buffers.hpp"
#include "list.hpp"
#include "name.hpp"

namespace wherry::mpi {

class PayloadSink;
struct Packet;

inline constexpr std::uint64_t kAnySource = UINT64_MAX;

/// The way to one other endpoint, or to this one.
struct Link : Hook {
  Name name;
  bool self = false;
  std::uint64_t address = kAnySource;  ///< what the application calls it
  Mailbox::Peer peer = Mailbox::kNoPeer;
  int error = 0;  ///< the connection is lost: an errno value

  // Outbox
  List<Packet> queue;  ///< packets that wait for room
  std::size_t queued = 0;
  std::uint64_t copied = 0;            ///< bytes of their payloads that are copies
  Operation notice = Operation::none;  ///< to be sent ahead of them

  // Limits: what the peer makes this process hold
  bool stopped = false;       ///< it was asked to announce all its messages
  std::uint64_t overrun = 0;  ///< bytes of its unexpected messages that came unannounced since then
  std::size_t held = 0;       ///< its announcements that nothing was posted for, and its accesses under way
  std::uint64_t asked = 0;    ///< Initiator: bytes of the answers under way that the peer may have to keep copies of

  // MessageSender and Offers: what this process keeps for the peer
  bool announces_all = false;  ///< the peer has asked for it
  std::uint64_t kept = 0;      ///< bytes of offered payloads whose completion was reported

  // Transfers and Lanes: long messages from the peer
  std::uint64_t last_streamed = 0;  ///< arch::ticks when it last announced one, or streamed
  std::uint32_t penalty = 0;        ///< messages that are read without asking it to stream, after the last stall
  std::uint32_t to_be_read = 0;     ///< of them, still to come
  std::uint64_t announced = 0;      ///< bytes since it was idle, or was refused a lane
  bool has_lane = false;
};

/// Where a message comes from, as receives name it. kAnySource while it is unknown.
inline std::uint64_t source_of(const Link* link) { return link == nullptr ? kAnySource : link->address; }

/// What goes before the payload of a packet: the head, and behind it the table of an announcement, the ranges of a
/// one-sided operation, or the name of a hello.
struct Wire {
  static constexpr std::size_t kMostTable =
      kMostRemotePieces * sizeof(RemotePiece) + kMostRemoteRanges * sizeof(RemoteRange);
  static_assert(kMostTable >= kNameBytes);

  PacketHead head{};
  std::array<std::byte, kMostTable> table;
  std::size_t bytes = sizeof(PacketHead);

  [[nodiscard]] const std::byte* data() const { return reinterpret_cast<const std::byte*>(&head); }
  void append(const void* from, std::size_t count);
  /// The table of where the payload lies.
  void describe(const Buffers& payload);
  /// The table of ranges, after that of where the payload lies.
  void name_ranges(std::span<const RemoteRange> ranges);
};
static_assert(offsetof(Wire, table) == sizeof(PacketHead));

/// A packet that arrives from one peer of the mailbox, piece by piece.
struct Inflow {
  static constexpr std::size_t kMostHead = sizeof(PacketHead) + Wire::kMostTable;

  Mailbox::Peer peer = Mailbox::kNoPeer;
  Link* link = nullptr;  ///< null until its hello
  std::array<std::byte, kMostHead> head;
  std::size_t head_bytes = 0;
  std::size_t head_wanted = kShortHead;
  std::uint64_t message_bytes = 0;
  PacketHead packet{};
  int error = 0;  ///< the peer breaks the rules: an errno value

  Buffers into;  ///< where the payload goes; what finds no place is dropped
  std::uint64_t arrived = 0;
  PayloadSink* sink = nullptr;  ///< null: the packet has no payload, or none that is waited for
  std::uint64_t subject = 0;    ///< what it is for, in the sink's own count

  /// From now on the payload goes there.
  void direct(PayloadSink& to, std::uint64_t number, const Buffers& buffers) {
    sink = &to;
    subject = number;
    into = buffers;
  }
  /// What is still to come of the payload is dropped.
  void drop_rest() {
    sink = nullptr;
    into = Buffers();
  }
  /// Where the payload lies in its sender's memory. False: the sum is not what the head says.
  [[nodiscard]] bool read_pieces(std::array<RemotePiece, kMostRemotePieces>& table) const;
  /// Where it goes in this process's memory. False as above.
  [[nodiscard]] bool read_ranges(std::array<RemoteRange, kMostRemoteRanges>& table) const;
};

/// What a payload arrives for.
class PayloadSink {
 public:
  /// Some of it has arrived: Inflow::arrived.
  virtual void progressed(Inflow& /*inflow*/) {}
  /// All of the packet is there.
  virtual void arrived(Inflow& inflow) = 0;
  /// The peer is lost: no more of it will come.
  virtual void lost(Inflow& inflow) = 0;

 protected:
  ~PayloadSink() = default;
};

}  // namespace wherry::mpi
