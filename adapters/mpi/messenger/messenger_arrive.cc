// SPDX-License-Identifier: Apache-2.0
// What comes out of the mailbox. Every field of a packet is checked: a peer that breaks the rules is forgotten, and
// what it had under way fails.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "messenger.hpp"

namespace wherry::mpi {
namespace {

constexpr int kMostPieces = 64;  // per round: what is to be sent has its turn, too
// The longest payload that is sent unasked: longer ones are announced.
constexpr std::uint64_t kMostUnasked = 1 << 20;
// Of one peer: announcements that nothing was posted for, writes under way, and answers that it does not take. Its own
// process holds more for each of them than this one does.
constexpr std::size_t kMostHeld = 1 << 20;

Envelope envelope_of(const PacketHead& packet) {
  return {packet.tag, packet.data, packet.bytes, (packet.flags & kTagged) != 0, (packet.flags & kHasData) != 0};
}

bool has_pieces(Operation operation) {
  return operation == Operation::announce || operation == Operation::announce_write || operation == Operation::grant;
}

bool has_ranges(Operation operation) { return operation >= Operation::write && operation <= Operation::atomic; }

// What of this operation follows the head before the payload.
std::size_t table_bytes(const PacketHead& packet) {
  if (packet.operation == Operation::hello) return kNameBytes;
  return (has_pieces(packet.operation) ? packet.pieces * sizeof(RemotePiece) : 0) +
         (has_ranges(packet.operation) ? packet.ranges * sizeof(RemoteRange) : 0);
}

std::uint64_t payload_bytes(const PacketHead& packet) {
  switch (packet.operation) {
    case Operation::eager:
    case Operation::stream:
    case Operation::reply:
    case Operation::write:
      return packet.bytes;
    case Operation::atomic:
      return operand_bytes(packet);
    default:
      return 0;
  }
}

bool is_consistent(const Inflow& inflow) {
  const PacketHead& packet = inflow.packet;
  if (packet.pieces > kMostRemotePieces || packet.ranges > kMostRemoteRanges) return false;
  if (has_ranges(packet.operation) && !has_pieces(packet.operation) && packet.pieces != 0) return false;
  if (packet.operation == Operation::atomic && !is_valid_atomic(packet)) return false;
  return inflow.message_bytes - sizeof(PacketHead) - table_bytes(packet) == payload_bytes(packet);
}

}  // namespace

// The table of an announcement, whose sum is what the head says.
bool Messenger::read_table(const Inflow& inflow, std::array<RemotePiece, kMostRemotePieces>& table,
                           std::uint16_t& count) {
  count = inflow.packet.pieces;
  std::memcpy(table.data(), inflow.head.data() + sizeof(PacketHead), count * sizeof(RemotePiece));
  std::uint64_t left = inflow.packet.bytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (table[i].bytes > left) return false;
    left -= table[i].bytes;
  }
  return left == 0;
}

Inflow& Messenger::inflow_of(Mailbox::Peer peer) {
  if (peer >= inflows_.size()) inflows_.resize(peer + 1);
  if (inflows_[peer] == nullptr) {
    inflows_[peer] = std::make_unique<Inflow>();
    inflows_[peer]->peer = peer;
  }
  return *inflows_[peer];
}

// Ends with what has come from one peer: a look in vain at it, or at another, would take as long as the message did,
// and the application waits for that. Not so with more ranks than processors, where peers wait for this one's turn: an
// allreduce of 48 took half as long again.
bool Messenger::take_pieces() noexcept {
  Mailbox::Piece piece;
  int taken = 0;
  do {
    if (!mailbox_.try_peek(piece).ok()) return taken > 0;
    Inflow& inflow = inflow_of(piece.from);
    if (!take_brief(inflow, piece) && !take_done(inflow, piece)) take(inflow, piece);
  } while (++taken < kMostPieces && (piece.more || is_oversubscribed()));
  return true;
}

// The most frequent packet, a short message that is whole and waited for, without the parts that put others together.
// False: it is not one.
bool Messenger::take_brief(Inflow& inflow, const Mailbox::Piece& piece) noexcept {
  const std::span<const std::byte> bytes = piece.bytes.first;
  if (bytes.size() != piece.message_bytes || bytes.size() < kBriefHead || inflow.link == nullptr) return false;
  PacketHead head{};
  std::memcpy(&head, bytes.data(), kBriefHead);
  if (head.operation != Operation::brief || (head.flags & kWantsReply) != 0) return false;
  head.bytes = bytes.size() - kBriefHead;
  const Envelope envelope = envelope_of(head);
  Receive* posted = head.bytes > kMostUnasked ? nullptr : matching_.receive_for(envelope, inflow.link->address);
  if (posted == nullptr) return false;
  Receive& receive = bind(*posted, envelope);
  receive.from = inflow.link;
  receive.envelope = envelope;
  receive.buffers.scatter(0, bytes.subspan(kBriefHead));
  mailbox_.consume(piece, bytes.size());
  finish(receive, 0);
  return true;
}

// The same for the answer to a message whose sender waits for it: there is one for each.
bool Messenger::take_done(Inflow& inflow, const Mailbox::Piece& piece) noexcept {
  const std::span<const std::byte> bytes = piece.bytes.first;
  if (bytes.size() != sizeof(PacketHead) || piece.message_bytes != sizeof(PacketHead)) return false;
  if (inflow.link == nullptr || bytes.front() != std::byte{static_cast<std::uint8_t>(Operation::done)}) return false;
  std::memcpy(&inflow.packet, bytes.data(), sizeof(PacketHead));
  inflow.packet.operation = Operation::done;  // not loaded twice
  mailbox_.consume(piece, bytes.size());
  on_done(inflow);
  if (inflow.error != 0) break_with(inflow);
  return true;
}

void Messenger::take(Inflow& inflow, const Mailbox::Piece& piece) noexcept {
  if (piece.offset == 0) {
    inflow.head_bytes = 0;
    inflow.head_wanted = kBriefHead;
    inflow.arrived = 0;
    inflow.message_bytes = piece.message_bytes;
  }
  const std::uint64_t end = piece.offset + piece.bytes.size();
  feed(inflow, piece.bytes.first);
  feed(inflow, piece.bytes.second);
  mailbox_.consume(piece, piece.bytes.size());
  if (end == piece.message_bytes && inflow.error == 0) this->end(inflow);
  if (inflow.error != 0) break_with(inflow);
}

void Messenger::feed(Inflow& inflow, std::span<const std::byte> bytes) {
  while (inflow.head_bytes < inflow.head_wanted && !bytes.empty() && inflow.error == 0) {
    const std::size_t part = std::min(bytes.size(), inflow.head_wanted - inflow.head_bytes);
    std::memcpy(inflow.head.data() + inflow.head_bytes, bytes.data(), part);
    inflow.head_bytes += part;
    bytes = bytes.subspan(part);
    if (inflow.head_bytes == inflow.head_wanted) read_head(inflow);
  }
  if (bytes.empty() || inflow.error != 0) return;
  inflow.into.scatter(inflow.arrived, bytes);
  inflow.arrived += bytes.size();
  if (inflow.packet.operation == Operation::stream) return streamed(inflow);
  if (inflow.unexpected != nullptr) inflow.unexpected->arrived = inflow.arrived;
}

// The head is complete, or its first part, or it and the table behind it.
void Messenger::read_head(Inflow& inflow) {
  if (inflow.head_bytes == kBriefHead) {
    std::memcpy(&inflow.packet, inflow.head.data(), kBriefHead);
    if (inflow.packet.operation == Operation::brief) return begin(inflow);
    inflow.head_wanted = sizeof(PacketHead);
    return;
  }
  if (inflow.head_bytes == sizeof(PacketHead)) {
    std::memcpy(&inflow.packet, inflow.head.data(), sizeof(PacketHead));
    if (!is_consistent(inflow)) {
      inflow.error = FI_EIO;
      return;
    }
    inflow.head_wanted += table_bytes(inflow.packet);
    if (inflow.head_wanted > inflow.head_bytes) return;
  }
  begin(inflow);
}

void Messenger::begin(Inflow& inflow) {
  inflow.into = Buffers();
  inflow.receive = nullptr;
  inflow.unexpected = nullptr;
  inflow.answered = nullptr;
  const Operation operation = inflow.packet.operation;
  if (inflow.link == nullptr && operation != Operation::hello) {
    inflow.error = FI_EIO;
    return;
  }
  if (inflow.link != nullptr && inflow.link->held + inflow.link->queued > kMostHeld) {
    inflow.error = FI_ENOBUFS;
    return;
  }
  switch (operation) {
    case Operation::hello:
      return on_hello(inflow);
    case Operation::brief:
      return on_brief(inflow);
    case Operation::eager:
      return on_eager(inflow);
    case Operation::announce:
      return on_announce(inflow);
    case Operation::want:
      return on_want(inflow);
    case Operation::stream:
      return on_stream(inflow);
    case Operation::done:
      return on_done(inflow);
    case Operation::press:
      inflow.link->pressed = true;
      return announce_queued(*inflow.link);
    case Operation::relieve:
      inflow.link->pressed = false;
      return;
    case Operation::write:
      return on_write(inflow);
    case Operation::announce_write:
      return on_announce_write(inflow);
    case Operation::read:
      return on_read(inflow);
    case Operation::atomic:
      return on_atomic(inflow);
    case Operation::reply:
      return on_reply(inflow);
    case Operation::grant:
      return on_grant(inflow);
    default:
      inflow.error = FI_EIO;
  }
}

// All of the packet is there.
void Messenger::end(Inflow& inflow) {
  if (inflow.head_bytes < inflow.head_wanted) {
    inflow.error = FI_EIO;
    return;
  }
  if (inflow.unexpected != nullptr) {
    inflow.unexpected->inflow = nullptr;
    inflow.unexpected = nullptr;
  }
  if (Receive* receive = inflow.receive; receive != nullptr) {
    inflow.receive = nullptr;
    if (!receive->streams) finish(*receive, 0);
  }
  if (inflow.operands != nullptr) carry_out(inflow);
  if (Send* send = std::exchange(inflow.answered, nullptr); send != nullptr) complete(*send, 0);
}

void Messenger::on_hello(Inflow& inflow) {
  const auto name = Name::parse_bytes(inflow.head.data() + sizeof(PacketHead));
  if (!name || inflow.packet.data != name_.incarnation || inflow.link != nullptr) {
    inflow.error = FI_ECONNREFUSED;
    return;
  }
  Link& link = link_to(*name);
  if (link.error != 0) {  // a name is that of one endpoint, and this one is lost
    inflow.error = link.error;
    return;
  }
  inflow.link = &link;
  if (inflow.link->peer != Mailbox::kNoPeer) return;
  inflow.link->peer = inflow.peer;
  say_hello(*inflow.link);
}

// What the head leaves out is that of an eager message which needs no answer.
void Messenger::on_brief(Inflow& inflow) {
  if ((inflow.packet.flags & kWantsReply) != 0) {
    inflow.error = FI_EIO;
    return;
  }
  inflow.packet.operation = Operation::eager;
  inflow.packet.bytes = inflow.message_bytes - kBriefHead;
  inflow.packet.request = 0;
  on_eager(inflow);
}

void Messenger::on_eager(Inflow& inflow) {
  if (inflow.packet.bytes > kMostUnasked) {
    inflow.error = FI_EIO;
    return;
  }
  const Envelope envelope = envelope_of(inflow.packet);
  Receive* posted = matching_.receive_for(envelope, inflow.link->address);
  if (posted == nullptr) {
    if (overruns(*inflow.link)) {
      inflow.error = FI_ENOBUFS;
    } else {
      keep(inflow, envelope);
    }
    return;
  }
  Receive& receive = bind(*posted, envelope);
  receive.from = inflow.link;
  receive.envelope = envelope;
  receive.wants_reply = (inflow.packet.flags & kWantsReply) != 0;
  receive.peer_request = inflow.packet.request;
  inflow.receive = &receive;
  inflow.into = receive.buffers;
}

void Messenger::on_announce(Inflow& inflow) {
  const Envelope envelope = envelope_of(inflow.packet);
  Receive* posted = matching_.receive_for(envelope, inflow.link->address);
  if (posted == nullptr) {
    Unexpected& message = keep(inflow, envelope);
    message.announced = true;
    ++inflow.link->held;
    if (!read_table(inflow, message.remote, message.remote_pieces)) inflow.error = FI_EIO;
    return;
  }
  Receive& receive = bind(*posted, envelope);
  receive.from = inflow.link;
  receive.envelope = envelope;
  receive.peer_request = inflow.packet.request;
  if (read_table(inflow, receive.remote, receive.remote_pieces)) return start_pull(receive);
  inflow.error = FI_EIO;
  receive.from = nullptr;
  finish(receive, FI_EIO);
}

void Messenger::on_want(Inflow& inflow) {
  Send* send = sends_.find(inflow.packet.request);
  const bool fits =
      send != nullptr && send->to == inflow.link && send->awaits && !send->is_linked() &&
      (send->wire.head.operation == Operation::announce || send->wire.head.operation == Operation::announce_write) &&
      inflow.packet.bytes != 0 && inflow.packet.bytes <= send->buffers.bytes();
  if (!fits) {
    inflow.error = FI_EIO;
    return;
  }
  send->wire.head.operation = Operation::stream;
  send->wire.head.pieces = 0;
  send->wire.head.ranges = 0;
  send->wire.head.request = inflow.packet.data;
  send->wanted_bytes = inflow.packet.bytes;
  push_chunk(*send);
}

void Messenger::on_stream(Inflow& inflow) {
  Receive* receive = receives_.find(inflow.packet.request);
  if (receive == nullptr) return;  // it was faster by itself
  const std::uint64_t goal = std::min(receive->envelope.bytes, receive->buffers.bytes());
  const bool fits = receive->from == inflow.link && receive->streams && inflow.packet.data == receive->arrived &&
                    inflow.packet.bytes != 0 && inflow.packet.bytes <= goal - receive->arrived;
  if (!fits) {
    inflow.error = FI_EIO;
    return;
  }
  inflow.receive = receive;
  if (receive->refused == 0) inflow.into = receive->buffers;
  inflow.arrived = receive->arrived;
}

void Messenger::on_done(Inflow& inflow) {
  Send* send = sends_.find(inflow.packet.request);
  const std::uint64_t outcome = inflow.packet.data;
  const bool fits = send != nullptr && send->to == inflow.link && send->awaits && !send->over && outcome <= INT32_MAX &&
                    (outcome != 0 || send->result.bytes() == 0) &&
                    (!send->is_linked() || send->wire.head.operation == Operation::stream);
  if (!fits) {
    inflow.error = FI_EIO;
    return;
  }
  const int error = static_cast<int>(outcome);
  if (send->is_linked()) return end_stream(*send, error);
  complete(*send, error);
}

}  // namespace wherry::mpi
