// SPDX-License-Identifier: Apache-2.0
#include "message_sender.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace wherry::mpi {
namespace {

// Bytes before a payload in a section: the message's length after padding, and the head.
constexpr std::uint64_t kAroundPayload = 16 + sizeof(PacketHead);
// Longest eager payload, in sections, if the receiver runs at the same time as the sender.
constexpr std::uint64_t kMostPartsAwake = 8;
// Longest payload of a short message: with its head it fits a section of any size, and the place beside the tail.
constexpr std::size_t kMostShort = 64;
// Bytes for one peer that are kept here until it has read them, although their completion was reported.
constexpr std::uint64_t kMostKept = 256 << 10;

PacketHead head_of(const SendRequest& request, Operation operation) {
  PacketHead head{};
  head.operation = operation;
  head.flags = static_cast<std::uint8_t>((request.tagged ? kTagged : 0) | (request.has_data ? kHasData : 0));
  head.tag = request.tag;
  head.data = request.data;
  head.bytes = request.buffers.bytes();
  return head;
}

Completion completion_of(const SendRequest& request) {
  Completion completion;
  completion.context = request.context;
  completion.wanted = request.wanted;
  completion.flags = FI_SEND | (request.tagged ? FI_TAGGED : FI_MSG);
  completion.tag = request.tag;
  return completion;
}

}  // namespace

int MessageSender::send(const SendRequest& request) {
  Link& link = *request.to;
  const std::uint64_t bytes = request.buffers.bytes();
  if (send_short(request)) return 0;
  if (request.inject && outbox_.is_blocked(link)) return -FI_EAGAIN;
  return is_to_be_announced(link, bytes) ? announce(request) : send_eager(request);
}

// Copies from the caller's memory into the mailbox. Returns false if the message must take the general path, for lack
// of room or for another reason.
bool MessageSender::send_short(const SendRequest& request) noexcept {
  const Link& link = *request.to;
  const bool fits = request.buffers.bytes() <= kMostShort && request.buffers.is_contiguous();
  if (!fits || request.delivery || link.announces_all || !link.queue.empty()) return false;
  const PacketHead head = head_of(request, Operation::short_eager);
  const auto bytes = std::as_bytes(std::span(&head, 1)).first<kShortHead>();
  const std::span payload(static_cast<const std::byte*>(request.buffers.first()), request.buffers.bytes());
  if (!mailbox_.try_send(link.peer, bytes, payload).ok()) return false;
  if (request.reported) report(request, 0);
  return true;
}

void MessageSender::report(const SendRequest& request, int error) {
  Completion completion = completion_of(request);
  completion.error = error;
  reporter_.sent(completion);
}

// Throws std::bad_alloc, after it has withdrawn the offer.
void MessageSender::queue(Link& link, const Wire& wire, const Buffers& payload, Offer* offer,
                          const Completion* completion) {
  try {
    outbox_.queue(link, wire, payload, {.request = offer, .completion = completion});
  } catch (...) {
    if (offer != nullptr) offers_.withdraw(*offer);
    throw;
  }
}

int MessageSender::send_eager(const SendRequest& request) {
  Link& link = *request.to;
  Wire wire;
  wire.head = head_of(request, Operation::eager);
  Offer* delivery = nullptr;
  if (request.delivery) {
    delivery = &offers_.make(link, Buffers());
    Offers::report_later(*delivery, completion_of(request));
    wire.head.flags |= kWantsReply;
    wire.head.request = Offers::number_of(*delivery);
  }
  const Outbox::Push pushed = link.queue.empty() ? outbox_.push(link, wire, request.buffers) : Outbox::Push::blocked;
  if (pushed == Outbox::Push::sent) {
    if (delivery == nullptr) {
      report(request, 0);
    } else {
      delivery->sent = true;
    }
  } else if (pushed == Outbox::Push::lost) {
    if (delivery != nullptr) offers_.withdraw(*delivery);
    report(request, link.error);
  } else if (request.inject) {
    if (delivery != nullptr) offers_.withdraw(*delivery);
    return -FI_EAGAIN;
  } else {
    const Completion completion = completion_of(request);
    queue(link, wire, request.buffers, delivery, delivery == nullptr ? &completion : nullptr);
  }
  return 0;
}

// A payload that does not fit its section would go through the overflow, whose pages are new each time. The receiver
// reads such a payload by one system call instead. If both sides run, a section's fill costs them a tenth of that call
// and its answer.
bool MessageSender::is_to_be_announced(const Link& link, std::uint64_t bytes) noexcept {
  if (link.announces_all || bytes > most_eager_) return true;
  const std::uint64_t section = mailbox_.section(link.peer).outgoing;
  const std::uint64_t parts = links_.is_oversubscribed() ? 1 : kMostPartsAwake;
  if (section == 0 || bytes + kAroundPayload <= parts * section) return false;
  return mailbox_.reaches_private_memory(link.peer);
}

// A payload up to most_eager_ is copied and kept here. So it completes as soon as its announcement has left, like an
// eager one. Not under back-pressure, and not if completion means that the payload has left or was delivered.
int MessageSender::announce(const SendRequest& request) {
  Link& link = *request.to;
  const std::uint64_t bytes = request.buffers.bytes();
  const bool may_be_kept = !link.announces_all && !request.delivery && !request.transmit;
  const bool is_kept = may_be_kept && bytes <= most_eager_ && link.kept + bytes <= kMostKept;
  std::unique_ptr<std::byte[]> copy;
  Buffers payload = request.buffers;
  if ((request.inject || is_kept) && bytes > 0) payload = payload.copied(copy);
  Offer& offer = offers_.make(link, payload);
  offer.copy = std::move(copy);
  if (is_kept) Offers::keep(offer);
  Wire wire;
  wire.head = head_of(request, Operation::announce);
  wire.head.request = Offers::number_of(offer);
  wire.describe(offer.payload);
  const Completion completion = completion_of(request);
  if (!is_kept) Offers::report_later(offer, completion);
  const Outbox::Push pushed = link.queue.empty() ? outbox_.push(link, wire) : Outbox::Push::blocked;
  if (pushed == Outbox::Push::blocked && request.inject) {
    offers_.withdraw(offer);
    return -FI_EAGAIN;
  }
  if (request.inject) offers_.count_injection(offer);
  if (pushed == Outbox::Push::blocked) {
    queue(link, wire, Buffers(), &offer, is_kept ? &completion : nullptr);
  } else if (pushed == Outbox::Push::lost) {
    offers_.withdraw(offer);
    report(request, link.error);
  } else {
    offer.sent = true;
    if (is_kept) reporter_.sent(completion);
  }
  return 0;
}

void MessageSender::send_to_self(const SendRequest& request) {
  const Envelope envelope{request.tag, request.data, request.buffers.bytes(), request.tagged, request.has_data};
  Offer& offer = offers_.make(*request.to, request.buffers);
  Offers::report_later(offer, completion_of(request));
  receiver_.on_own(*request.to, envelope, offer, request.inject || envelope.bytes <= most_eager_, request.delivery);
}

void MessageSender::on_stop_eager(Link& link) {
  link.announces_all = true;
  link.queue.for_each([&](Packet& packet) {
    if (packet.wire.head.operation != Operation::eager) return;
    const bool is_delivery = packet.request != nullptr;
    Offer& offer = is_delivery ? static_cast<Offer&>(*packet.request) : offers_.make(link, Buffers());
    if (packet.reports) Offers::report_later(offer, packet.completion);
    offer.payload = std::exchange(packet.payload, Buffers());
    offer.copy = std::move(packet.copy);
    packet.request = &offer;
    packet.reports = false;
    packet.wire.head.operation = Operation::announce;
    packet.wire.head.flags &= static_cast<std::uint8_t>(~kWantsReply);
    packet.wire.head.request = Offers::number_of(offer);
    packet.wire.describe(offer.payload);
  });
}

}  // namespace wherry::mpi
