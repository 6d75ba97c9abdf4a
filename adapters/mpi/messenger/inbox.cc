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

constexpr int kMostPieces = 64;  // per round: what is to be sent has its turn, too

}  // namespace

// Ends with what has come from one peer: a look that finds nothing would take as long as the message did,
// and the application waits for that. Not so with more ranks than processors, where peers wait for this one's turn: an
// allreduce of 48 took half as long again.
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

// The most frequent packet, a short message that is whole and waited for, without the parts that put others together.
// False: it is not one.
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

// The same for an answer that is a head alone: there is one for each message whose sender waits for it, and for each
// one-sided operation.
bool Inbox::take_answer(Inflow& inflow, const Mailbox::Piece& piece) noexcept {
  const std::span<const std::byte> bytes = piece.bytes.first;
  if (bytes.size() != sizeof(PacketHead) || piece.message_bytes != sizeof(PacketHead)) return false;
  const auto operation = static_cast<Operation>(bytes.front());
  if (inflow.link == nullptr || (operation != Operation::done && operation != Operation::accessed)) return false;
  std::memcpy(&inflow.packet, bytes.data(), sizeof(PacketHead));
  inflow.packet.operation = operation;  // not loaded twice
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

// The head is complete, or its first part, or it and the table behind it.
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

// All of the packet is there.
void Inbox::end(Inflow& inflow) {
  if (inflow.head_bytes < inflow.head_wanted) {
    inflow.error = FI_EIO;
  } else if (PayloadSink* sink = std::exchange(inflow.sink, nullptr); sink != nullptr) {
    sink->arrived(inflow);
  }
}

}  // namespace wherry::mpi
