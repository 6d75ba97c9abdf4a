// SPDX-License-Identifier: Apache-2.0
// State of one other endpoint, and of the packet that arrives from it. Comments in Link name the class that uses the
// members below them.
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

/// The connection to one other endpoint, or this endpoint's link to itself.
struct Link : Hook {
  Name name;
  bool self = false;
  std::uint64_t address = kAnySource;  ///< the application's fi_addr_t of the endpoint
  Mailbox::Peer peer = Mailbox::kNoPeer;
  int error = 0;  ///< errno value once the connection is lost, else 0

  // Outbox
  List<Packet> queue;  ///< packets that wait for room
  std::size_t queued = 0;
  std::uint64_t copied = 0;            ///< bytes of queued payloads that are copies
  Operation notice = Operation::none;  ///< `stop_eager` or `resume_eager`, to be sent ahead of the queue

  // Limits: what the peer makes this process hold
  bool stopped = false;       ///< it was asked to announce all its messages
  std::uint64_t overrun = 0;  ///< bytes of its unexpected eager messages since then
  std::size_t held = 0;       ///< its unmatched announcements, and its accesses and grants under way
  std::uint64_t asked = 0;    ///< Initiator: bytes of the answers under way that the peer may have to keep copies of

  // MessageSender and Offers: what this process keeps for the peer
  bool announces_all = false;  ///< the peer has sent `stop_eager`
  std::uint64_t kept = 0;      ///< bytes of offered payloads whose completion was already reported

  // Transfers and Lanes: long messages from the peer
  std::uint64_t last_streamed = 0;  ///< arch::ticks at its last announcement or chunk
  std::uint32_t penalty = 0;        ///< messages to be read without asking it to stream, after its last stall
  std::uint32_t to_be_read = 0;     ///< how many of these remain
  std::uint64_t announced = 0;      ///< bytes announced since it was idle, or since the last decision about a lane
  bool has_lane = false;
};

/// The source of a message, as receives name it. kAnySource if it is unknown.
inline std::uint64_t source_of(const Link* link) { return link == nullptr ? kAnySource : link->address; }

/// Everything before the payload of a packet: the head, then the table of an announcement, the ranges of a one-sided
/// operation, or the name of a hello.
struct Wire {
  static constexpr std::size_t kMostTable =
      kMostRemotePieces * sizeof(RemotePiece) + kMostRemoteRanges * sizeof(RemoteRange);
  static_assert(kMostTable >= kNameBytes);

  PacketHead head{};
  std::array<std::byte, kMostTable> table;
  std::size_t bytes = sizeof(PacketHead);

  [[nodiscard]] const std::byte* data() const { return reinterpret_cast<const std::byte*>(&head); }
  void append(const void* from, std::size_t count);
  /// Appends a table of RemotePieces that says where the payload lies.
  void describe(const Buffers& payload);
  /// Appends the table of ranges. It comes after that of describe().
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
  int error = 0;  ///< errno value if the peer violates the protocol, else 0

  Buffers into;  ///< destination of the payload; bytes beyond its end are dropped
  std::uint64_t arrived = 0;
  PayloadSink* sink = nullptr;  ///< null if the packet has no payload, or its payload is dropped
  std::uint64_t subject = 0;    ///< the sink's number for this payload

  /// Sets the destination of the rest of the payload, and the sink that learns of its arrival.
  void direct(PayloadSink& to, std::uint64_t number, const Buffers& buffers) {
    sink = &to;
    subject = number;
    into = buffers;
  }
  /// Drops the rest of the payload.
  void drop_rest() {
    sink = nullptr;
    into = Buffers();
  }
  /// Reads where the payload lies in the sender's memory. False if the lengths do not add up to that in the head.
  [[nodiscard]] bool read_pieces(std::array<RemotePiece, kMostRemotePieces>& table) const;
  /// Reads where the payload goes in this process's memory. False likewise.
  [[nodiscard]] bool read_ranges(std::array<RemoteRange, kMostRemoteRanges>& table) const;
};

/// Is called while a payload arrives.
class PayloadSink {
 public:
  /// Inflow::arrived bytes have arrived.
  virtual void progressed(Inflow& /*inflow*/) {}
  /// The whole packet has arrived.
  virtual void arrived(Inflow& inflow) = 0;
  /// The connection is lost: no more of the payload will come.
  virtual void lost(Inflow& inflow) = 0;

 protected:
  ~PayloadSink() = default;
};

}  // namespace wherry::mpi
