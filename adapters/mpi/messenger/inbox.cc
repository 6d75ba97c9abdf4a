// SPDX-License-Identifier: Apache-2.0
#include "inbox.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "limits.hpp"
#include "protocols.hpp"

namespace wherry::mpi {
namespace {

constexpr int kMostPieces = 64;  // per round, so that sending has its turn

}  // namespace

// Stops after the pieces of one peer: another look that finds nothing takes as long as a message, and the application
// waits meanwhile. With more ranks than processors it takes more, because peers wait for this one's turn: otherwise an
// allreduce of 48 ranks took half as long again.
bool Inbox::take() noexcept {
  Mailbox::Piece piece;
  int taken = 0;
  do {
    if (!mailbox_.try_peek(piece).ok()) return taken > 0;
    Inflow& inflow = links_.inflow_of(piece.from);
    if (!take_short(inflow, piece) && !take_answer(inflow, piece)) take(inflow, piece);
  } while (++taken < kMostPieces && (piece.more || links_.is_oversubscribed()));
  return true;
}

// Fast path for the most frequent packet: a short message that has arrived whole and for which a receive is posted.
// Returns false if it is another packet.
bool Inbox::take_short(Inflow& inflow, const Mailbox::Piece& piece) noexcept {
  const std::span<const std::byte> bytes = piece.bytes.first;
  if (bytes.size() != piece.message_bytes || bytes.size() < kShortHead || inflow.link == nullptr) return false;
  PacketHead head{};
  std::memcpy(&head, bytes.data(), kShortHead);
  if (head.operation != Operation::short_eager || (head.flags & kWantsReply) != 0) return false;
  if (!receiver_.take_short(*inflow.link, head, bytes.subspan(kShortHead))) return false;
  mailbox_.consume(piece, bytes.size());
  return true;
}

// Fast path for an answer that is a head alone. There is one for each message whose sender waits for delivery, and for
// each one-sided operation. Returns false if it is another packet.
bool Inbox::take_answer(Inflow& inflow, const Mailbox::Piece& piece) noexcept {
  const std::span<const std::byte> bytes = piece.bytes.first;
  if (bytes.size() != sizeof(PacketHead) || piece.message_bytes != sizeof(PacketHead)) return false;
  const auto operation = static_cast<Operation>(bytes.front());
  if (inflow.link == nullptr || (operation != Operation::done && operation != Operation::accessed)) return false;
  std::memcpy(&inflow.packet, bytes.data(), sizeof(PacketHead));
  inflow.packet.operation = operation;  // the value that was checked: the peer may have changed it since
  mailbox_.consume(piece, bytes.size());
  protocol_of(operation).begin(roles_, inflow);
  if (inflow.error != 0) losses_.on_breach(inflow);
  return true;
}

void Inbox::take(Inflow& inflow, const Mailbox::Piece& piece) noexcept {
  if (piece.offset == 0) {
    inflow.head_bytes = 0;
    inflow.head_wanted = kShortHead;
    inflow.arrived = 0;
    inflow.message_bytes = piece.message_bytes;
    inflow.drop_rest();
  }
  const std::uint64_t end = piece.offset + piece.bytes.size();
  feed(inflow, piece.bytes.first);
  feed(inflow, piece.bytes.second);
  mailbox_.consume(piece, piece.bytes.size());
  if (end == piece.message_bytes && inflow.error == 0) this->end(inflow);
  if (inflow.error != 0) losses_.on_breach(inflow);
}

void Inbox::feed(Inflow& inflow, std::span<const std::byte> bytes) {
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
  if (inflow.sink != nullptr) inflow.sink->progressed(inflow);
}

// Called when head_wanted bytes are there: the short head, the whole head, or the head and the tables behind it.
void Inbox::read_head(Inflow& inflow) {
  if (inflow.head_bytes == kShortHead) {
    std::memcpy(&inflow.packet, inflow.head.data(), kShortHead);
    if (inflow.packet.operation == Operation::short_eager) return begin(inflow);
    inflow.head_wanted = sizeof(PacketHead);
    return;
  }
  if (inflow.head_bytes == sizeof(PacketHead)) {
    std::memcpy(&inflow.packet, inflow.head.data(), sizeof(PacketHead));
    const Protocol& protocol = protocol_of(inflow.packet.operation);
    if (!is_consistent(protocol, inflow.packet, inflow.message_bytes)) {
      inflow.error = FI_EIO;
      return;
    }
    inflow.head_wanted += table_bytes(protocol, inflow.packet);
    if (inflow.head_wanted > inflow.head_bytes) return;
  }
  begin(inflow);
}

void Inbox::begin(Inflow& inflow) {
  const Operation operation = inflow.packet.operation;
  const Protocol& protocol = protocol_of(operation);
  if (protocol.begin == nullptr || (inflow.link == nullptr && operation != Operation::hello)) {
    inflow.error = FI_EIO;
  } else if (inflow.link != nullptr && Limits::is_exceeded(*inflow.link)) {
    inflow.error = FI_ENOBUFS;
  } else {
    protocol.begin(roles_, inflow);
  }
}

// Called when the whole packet has arrived.
void Inbox::end(Inflow& inflow) {
  if (inflow.head_bytes < inflow.head_wanted) {
    inflow.error = FI_EIO;
  } else if (PayloadSink* sink = std::exchange(inflow.sink, nullptr); sink != nullptr) {
    sink->arrived(inflow);
  }
}

}  // namespace wherry::mpi
