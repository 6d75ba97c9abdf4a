// SPDX-License-Identifier: Apache-2.0
#include "unexpected_messages.hpp"

#include <rdma/fi_errno.h>

#include <memory>
#include <utility>

namespace wherry::mpi {

Unexpected& UnexpectedMessages::keep(Inflow& inflow, const Envelope& envelope) {
  Unexpected& message = messages_.take();
  message.from = inflow.link;
  message.envelope = envelope;
  message.wants_reply = (inflow.packet.flags & kWantsReply) != 0;
  message.peer_request = inflow.packet.request;
  message.round = round_;
  if (inflow.packet.operation == Operation::announce) {
    message.announced = true;
    message.remote_pieces = inflow.packet.pieces;
    ++inflow.link->held;
    if (!inflow.read_pieces(message.remote)) inflow.error = FI_EIO;
    return message;
  }
  if (envelope.bytes > message.in_place.size()) {
    message.payload = std::make_unique_for_overwrite<std::byte[]>(envelope.bytes);
  }
  message.inflow = &inflow;
  inflow.direct(*this, Pool<Unexpected>::number_of(message), Buffers(message.bytes(), envelope.bytes));
  limits_.keep(*inflow.link, kept_bytes(message));
  return message;
}

Unexpected& UnexpectedMessages::keep_own(Link& self, const Envelope& envelope, Offer& offer) {
  Unexpected& message = messages_.take();
  message.from = &self;
  message.envelope = envelope;
  message.own = &offer;
  return message;
}

void UnexpectedMessages::take_copy(Unexpected& message) {
  message.payload = std::move(message.own->copy);
  message.own = nullptr;
  limits_.keep_own(kept_bytes(message));
}

void UnexpectedMessages::drop(Unexpected& message) {
  if (message.announced) {
    --message.from->held;
  } else if (message.own == nullptr) {
    limits_.release(kept_bytes(message));
  }
  message.payload.reset();
  messages_.give(message);
}

void UnexpectedMessages::arrived(Inflow& inflow) {
  if (Unexpected* message = messages_.find(inflow.subject); message != nullptr) message->inflow = nullptr;
}

void UnexpectedMessages::lost(Inflow& inflow) {
  Unexpected* message = messages_.find(inflow.subject);
  if (message == nullptr) return;
  message->inflow = nullptr;
  message->error = FI_ECONNRESET;
}

}  // namespace wherry::mpi
