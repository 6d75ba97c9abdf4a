// SPDX-License-Identifier: Apache-2.0
#include "message_receiver.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>

namespace wherry::mpi {
namespace {

std::uint64_t kind_flags(const Envelope& envelope) {
  return FI_RECV | (envelope.tagged ? FI_TAGGED : FI_MSG) | (envelope.has_data ? FI_REMOTE_CQ_DATA : 0);
}

Completion found(const ReceiveRequest& request, const Unexpected& message) {
  Completion completion;
  completion.context = request.context;
  completion.flags = kind_flags(message.envelope);
  completion.bytes = message.envelope.bytes;
  completion.data = message.envelope.data;
  completion.tag = message.envelope.tag;
  completion.source = source_of(message.from);
  return completion;
}

Completion arrived_in(const Buffers& into, const Envelope& envelope, void* context, bool wanted) {
  Completion completion;
  completion.context = context;
  completion.flags = kind_flags(envelope);
  completion.bytes = std::min(envelope.bytes, into.bytes());
  completion.buffer = into.first();
  completion.data = envelope.data;
  completion.tag = envelope.tag;
  completion.missing = envelope.bytes - completion.bytes;
  completion.error = completion.missing > 0 ? FI_ETRUNC : 0;
  completion.wanted = wanted;
  return completion;
}

Completion failed(const Pattern& pattern, void* context, int error) {
  Completion completion;
  completion.context = context;
  completion.flags = FI_RECV | (pattern.tagged ? FI_TAGGED : FI_MSG);
  completion.tag = pattern.tag;
  completion.error = error;
  return completion;
}

Envelope envelope_of(const PacketHead& packet) {
  return {packet.tag, packet.data, packet.bytes, (packet.flags & kTagged) != 0, (packet.flags & kHasData) != 0};
}

}  // namespace

Receive& MessageReceiver::post(const ReceiveRequest& request) {
  Receive& receive = receives_.take();
  static_cast<Pattern&>(receive) = static_cast<const Pattern&>(request);
  receive.context = request.context;
  receive.buffers = request.buffers;
  receive.wanted = request.wanted;
  receive.several = request.several;
  matching_.post(receive);
  return receive;
}

void MessageReceiver::receive(const ReceiveRequest& request) {
  Unexpected* message = matching_.message_for(request);
  if (message == nullptr) {
    post(request);
  } else if (!request.several) {
    message->unlink();
    accept(delivery_of(request), *message);
  } else {
    Receive& receive = post(request);
    for (; receive.is_linked() && message != nullptr; message = matching_.message_for(request)) {
      message->unlink();
      accept(bind(receive, message->envelope, *message->from), *message);
    }
  }
}

// For a receive that need not be posted, because its message is there.
MessageReceiver::Delivery MessageReceiver::delivery_of(const ReceiveRequest& request) {
  Delivery delivery;
  delivery.into = request.buffers;
  delivery.context = request.context;
  delivery.wanted = request.wanted;
  return delivery;
}

// Binds a message to a posted receive, which is then no longer posted, or to the next part of a multi-receive.
MessageReceiver::Delivery MessageReceiver::bind(Receive& posted, const Envelope& envelope, Link& from) {
  Delivery delivery;
  delivery.from = &from;
  delivery.envelope = envelope;
  delivery.context = posted.context;
  delivery.wanted = posted.wanted;
  if (!posted.several) {
    delivery.into = posted.buffers;
    posted.unlink();
    receives_.give(posted);
    return delivery;
  }
  const std::uint64_t room = posted.buffers.bytes() - posted.used;
  const std::uint64_t bytes = std::min(room, envelope.bytes);
  delivery.whole = &posted;
  delivery.into = Buffers(static_cast<std::byte*>(posted.buffers.first()) + posted.used, bytes);
  posted.used += bytes;
  ++posted.parts;
  if (room - bytes < std::max<std::uint64_t>(least_room, 1)) posted.unlink();
  return delivery;
}

std::uint64_t MessageReceiver::park(const Delivery& delivery) {
  PendingDelivery& pending = deliveries_.take();
  pending.delivery = delivery;
  return Pool<PendingDelivery>::number_of(pending);
}

// Delivers an unexpected message that is no longer in a list. The rest of its payload may still arrive.
void MessageReceiver::accept(Delivery&& delivery, Unexpected& message) {
  delivery.from = message.from;
  delivery.envelope = message.envelope;
  delivery.wants_reply = message.wants_reply;
  delivery.peer_request = message.peer_request;
  if (message.own != nullptr) return take_from_self(delivery, message);
  if (message.error != 0) {
    const int error = message.error;
    unexpected_.drop(message);
    return finish(delivery, error);
  }
  if (message.announced) {
    const Transfers::Source source{message.from, message.peer_request, message.remote, message.remote_pieces};
    const std::uint64_t parked = park_transfer(delivery);
    unexpected_.drop(message);
    return transfer(delivery, source, parked);
  }
  delivery.into.scatter(0, {message.bytes(), UnexpectedMessages::arrived_bytes(message)});
  Inflow* inflow = message.inflow;
  const std::uint64_t parked = inflow == nullptr ? 0 : park(delivery);  // nothing after this can fail
  unexpected_.drop(message);
  if (inflow == nullptr) return finish(delivery, 0);
  inflow->direct(*this, parked, delivery.into);
}

void MessageReceiver::take_from_self(const Delivery& delivery, Unexpected& message) {
  Offer& offer = *message.own;
  std::uint64_t offset = 0;
  for (const iovec& range : offer.payload.ranges()) {
    delivery.into.scatter(offset, {static_cast<const std::byte*>(range.iov_base), range.iov_len});
    offset += range.iov_len;
  }
  unexpected_.drop(message);
  offers_.end(offer, 0);
  finish(delivery, 0);
}

std::uint64_t MessageReceiver::park_transfer(Delivery& delivery) {
  delivery.wants_reply = false;  // the transfer replies
  return park(delivery);
}

void MessageReceiver::transfer(const Delivery& delivery, const Transfers::Source& source, std::uint64_t parked) {
  const std::uint64_t goal = std::min(delivery.envelope.bytes, delivery.into.bytes());
  transfers_.start(source, delivery.into, goal, *this, parked);
}

void MessageReceiver::transferred(std::uint64_t subject, int error) {
  PendingDelivery* pending = deliveries_.find(subject);
  if (pending == nullptr) return;
  const Delivery delivery = pending->delivery;
  deliveries_.give(*pending);
  finish(delivery, error);
}

void MessageReceiver::lost(Inflow& inflow) { transferred(inflow.subject, FI_ECONNRESET); }

void MessageReceiver::finish(const Delivery& delivery, int error) {
  Completion completion = arrived_in(delivery.into, delivery.envelope, delivery.context, delivery.wanted);
  completion.source = source_of(delivery.from);
  if (error != 0) completion.error = error;
  if (delivery.wants_reply) {
    outbox_.control(*delivery.from, Operation::done, delivery.peer_request, static_cast<std::uint64_t>(error));
  }
  Receive* whole = delivery.whole;
  if (whole != nullptr && --whole->parts == 0 && !whole->is_linked()) {
    completion.flags |= FI_MULTI_RECV;
    receives_.give(*whole);
  }
  reporter_.received(completion);
}

bool MessageReceiver::take_short(Link& from, PacketHead& head, std::span<const std::byte> payload) {
  head.bytes = payload.size();
  const Envelope envelope = envelope_of(head);
  Receive* posted = payload.size() > kMostUnasked ? nullptr : matching_.receive_for(envelope, from.address);
  if (posted == nullptr) return false;
  if (posted->several) {
    const Delivery delivery = bind(*posted, envelope, from);
    delivery.into.scatter(0, payload);
    finish(delivery, 0);
    return true;
  }
  posted->unlink();
  posted->buffers.scatter(0, payload);
  Completion completion = arrived_in(posted->buffers, envelope, posted->context, posted->wanted);
  completion.source = from.address;
  receives_.give(*posted);
  reporter_.received(completion);
  return true;
}

// Sets the fields that the short head leaves out: those of an eager message which needs no answer.
void MessageReceiver::on_short_eager(Inflow& inflow) {
  if ((inflow.packet.flags & kWantsReply) != 0) {
    inflow.error = FI_EIO;
    return;
  }
  inflow.packet.operation = Operation::eager;
  inflow.packet.bytes = inflow.message_bytes - kShortHead;
  inflow.packet.request = 0;
  on_eager(inflow);
}

void MessageReceiver::on_eager(Inflow& inflow) {
  if (inflow.packet.bytes > kMostUnasked) {
    inflow.error = FI_EIO;
    return;
  }
  const Envelope envelope = envelope_of(inflow.packet);
  Receive* posted = matching_.receive_for(envelope, inflow.link->address);
  if (posted != nullptr) {
    Delivery delivery = bind(*posted, envelope, *inflow.link);
    delivery.wants_reply = (inflow.packet.flags & kWantsReply) != 0;
    delivery.peer_request = inflow.packet.request;
    return inflow.direct(*this, park(delivery), delivery.into);
  }
  if (limits_.overruns(*inflow.link)) {
    inflow.error = FI_ENOBUFS;
  } else {
    matching_.keep(unexpected_.keep(inflow, envelope));
  }
}

void MessageReceiver::on_announce(Inflow& inflow) {
  const Envelope envelope = envelope_of(inflow.packet);
  Receive* posted = matching_.receive_for(envelope, inflow.link->address);
  if (posted == nullptr) return matching_.keep(unexpected_.keep(inflow, envelope));
  Delivery delivery = bind(*posted, envelope, *inflow.link);
  Transfers::Source source{inflow.link, inflow.packet.request, {}, inflow.packet.pieces};
  if (inflow.read_pieces(source.pieces)) return transfer(delivery, source, park_transfer(delivery));
  inflow.error = FI_EIO;
  finish(delivery, FI_EIO);
}

void MessageReceiver::on_own(Link& self, const Envelope& envelope, Offer& offer, bool copies, bool delivery) {
  Unexpected& message = unexpected_.keep_own(self, envelope, offer);
  if (Receive* posted = matching_.receive_for(envelope, self.address); posted != nullptr) {
    return accept(bind(*posted, envelope, self), message);
  }
  if (copies) offer.copy_payload();
  matching_.keep(message);
  if (delivery || (offer.copy == nullptr && envelope.bytes > 0)) return;
  unexpected_.take_copy(message);
  offers_.end(offer, 0);
}

int MessageReceiver::cancel(void* context) {
  Receive* receive = matching_.posted_with(context);
  if (receive == nullptr) return -FI_ENOENT;
  fail(*receive, kAnySource, FI_ECANCELED);
  return 0;
}

void MessageReceiver::fail(Receive& posted, std::uint64_t source, int error) {
  posted.unlink();
  Completion completion = failed(posted, posted.context, error);
  completion.source = source;
  if (posted.parts == 0) {
    if (posted.several) completion.flags |= FI_MULTI_RECV;
    receives_.give(posted);
  }
  reporter_.received(completion);
}

bool MessageReceiver::peek(const ReceiveRequest& request, bool claims, bool discards) {
  Unexpected* message = matching_.message_for(request);
  if (message == nullptr || unexpected_.is_new(*message)) {
    reporter_.received(failed(request, request.context, FI_ENOMSG));
    return false;
  }
  reporter_.received(found(request, *message));
  if (claims) matching_.claim(*message, request.context);
  if (discards && !claims) {
    message->unlink();
    discard(*message);
  }
  return true;
}

int MessageReceiver::receive_claimed(const ReceiveRequest& request) {
  Unexpected* message = matching_.take_claimed(request.context);
  if (message == nullptr) return -FI_EINVAL;
  accept(delivery_of(request), *message);
  return 0;
}

int MessageReceiver::discard_claimed(const ReceiveRequest& request) {
  Unexpected* message = matching_.take_claimed(request.context);
  if (message == nullptr) return -FI_EINVAL;
  reporter_.received(found(request, *message));
  discard(*message);
  return 0;
}

void MessageReceiver::discard(Unexpected& message) {
  Offer* own = message.own;
  if (message.inflow != nullptr) message.inflow->drop_rest();
  if (own == nullptr && (message.announced || message.wants_reply)) {
    outbox_.control(*message.from, Operation::done, message.peer_request, 0);
  }
  unexpected_.drop(message);
  if (own != nullptr) offers_.end(*own, 0);
}

void MessageReceiver::lose(const Link& link, int error) {
  matching_.for_each_unexpected([&](Unexpected& message) {
    if (message.from == &link && message.announced) message.error = FI_ECONNRESET;
  });
  if (error == 0 || link.address == kAnySource) return;
  matching_.for_each_posted([&](Receive& receive) {
    if (receive.source == link.address && !receive.several) fail(receive, link.address, FI_ECONNRESET);
  });
}

void MessageReceiver::drop_all_of(const Link& link) {
  matching_.for_each_unexpected([&](Unexpected& message) {
    if (message.from != &link || message.own != nullptr || message.claimed != nullptr) return;
    message.unlink();
    if (message.inflow != nullptr) message.inflow->drop_rest();
    unexpected_.drop(message);
  });
}

}  // namespace wherry::mpi
