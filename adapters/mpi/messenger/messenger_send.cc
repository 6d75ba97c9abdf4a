// SPDX-License-Identifier: Apache-2.0
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "messenger.hpp"

namespace wherry::mpi {
namespace {

// Back-pressure: packets that wait for room at one peer, and injected messages, whose payload is copied, that wait for
// anything. Others are in the application's own memory: it may send as many before its peer receives the first.
constexpr std::size_t kMostQueued = 1024;
constexpr std::size_t kMostInjections = 1 << 17;
// The sender looks at its mailbox after this many requests. A program that sends for long without reading completions
// would otherwise miss what peers ask of it, such as to announce messages.
constexpr std::uint32_t kRequestsPerLook = 32;
// What goes before a payload in a section: the message's length after padding, and the head.
constexpr std::uint64_t kAroundPayload = 16 + sizeof(PacketHead);
// Sections' fill of an eager payload where the receiver runs beside the sender.
constexpr std::uint64_t kMostPartsAwake = 8;
// What fits a section of any size with its head: a short message is sent as a whole, or not yet.
constexpr std::size_t kMostAtOnce = 64;
// Payload for one peer that is kept here until it was read, though its completion was reported.
constexpr std::uint64_t kMostKept = 256 << 10;
// Longer packets move through a section in pieces, and so wait for their receiver.
constexpr std::uint64_t kMostWhole = 64 << 10;
static_assert(kMostWhole >= kMostInjected + sizeof(Send::Wire) && 2 * kMostWhole <= kOverflow);

std::uint8_t flags_of(const SendRequest& request) {
  return static_cast<std::uint8_t>((request.tagged ? kTagged : 0) | (request.has_data ? kHasData : 0) |
                                   (request.delivery ? kWantsReply : 0));
}

PacketHead head_of(const SendRequest& request) {
  PacketHead head{};
  head.operation = Operation::eager;
  head.flags = flags_of(request);
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

bool Messenger::is_congested(const Link& link, bool injects) const {
  return link.queued >= kMostQueued || (injects && injections_ >= kMostInjections);
}

Send& Messenger::new_send(const SendRequest& request) {
  Send& send = sends_.take();
  send.to = request.to;
  send.context = request.context;
  send.tagged = request.tagged;
  send.wanted = request.wanted;
  send.inject = request.inject;
  send.awaits = request.delivery;
  send.buffers = request.buffers;
  send.wire.head = head_of(request);
  send.wire.head.request = Pool<Send>::number_of(send);
  return send;
}

void Messenger::note_injection(Send& send) {
  send.is_injection = send.inject;
  injections_ += send.inject ? 1 : 0;
}

// 0: one more request may go there.
int Messenger::make_way(Link& link, bool injects) {
  if (link.peer == Mailbox::kNoPeer || link.error != 0) {
    if (const int status = connect(link); status != 0) return status;
  }
  if (++requests_ >= kRequestsPerLook) look();
  if (link.error != 0) return -link.error;
  if (!is_congested(link, injects)) return 0;
  progress();
  return is_congested(link, injects) ? -FI_EAGAIN : 0;
}

int Messenger::send(const SendRequest& request) {
  Link& link = *request.to;
  if (link.self) return send_to_self(request);
  if (const int status = make_way(link, request.inject); status != 0) return status;
  if (request.buffers.bytes() <= kMostAtOnce && send_at_once(request)) return 0;
  if (request.inject && is_blocked(link)) return -FI_EAGAIN;
  Send& send = new_send(request);
  if (is_to_be_announced(link, request.buffers.bytes())) {
    announce(send, request.transmit);
  } else {
    send.prepare(sizeof(PacketHead), true);
  }
  if (request.inject) return inject(send);
  start(send);
  return 0;
}

// Packets wait for room there, and still do after a try.
bool Messenger::is_blocked(Link& link) noexcept {
  if (link.queue.empty()) return false;
  flush(link);
  const bool waits = link.queue.find([](const Send& send) {
    return send.wire.head.operation != Operation::stream || send.outgoing.taken != 0;
  }) != nullptr;
  refused_ |= waits;
  return waits;
}

// The call's return is all that its caller is told: the message must be where the receiver finds it by itself.
int Messenger::inject(Send& send) {
  const Push result = push(send);
  if (result == Push::blocked) {
    refused_ = true;
    forget(send);
    return -FI_EAGAIN;
  }
  note_injection(send);
  if (result == Push::lost) {
    complete(send, send.to->error);
  } else {
    was_pushed(send);
  }
  return 0;
}

// From the stack, as nothing of it is needed afterwards. False: it is to go the long way, where there is no room for
// all of it just now, nor another reason.
bool Messenger::send_at_once(const SendRequest& request) noexcept {
  Link& link = *request.to;
  if (request.delivery || link.pressed || !link.queue.empty()) return false;
  PacketHead head = head_of(request);
  head.operation = Operation::brief;
  std::array<std::byte, kBriefHead + kMostAtOnce> packet;
  std::memcpy(packet.data(), &head, kBriefHead);
  request.buffers.gather(packet.data() + kBriefHead);
  if (!mailbox_.try_send(link.peer, std::span(packet).first(kBriefHead + request.buffers.bytes())).ok()) return false;
  if (request.reported) reporter_.sent(completion_of(request));
  return true;
}

// A payload that its section does not hold goes through it in parts, and both sides have to run in turn for each: the
// receiver reads it by one call instead. Both awake, a part takes them a tenth of what that call and its answer take.
bool Messenger::is_to_be_announced(const Link& link, std::uint64_t bytes) noexcept {
  if (link.pressed || bytes > most_eager_) return true;
  const std::uint64_t section = mailbox_.section(link.peer).outgoing;
  const std::uint64_t parts = is_oversubscribed() ? 1 : kMostPartsAwake;
  if (section == 0 || bytes + kAroundPayload <= parts * section) return false;
  return mailbox_.reaches_private_memory(link.peer);
}

// A short payload is kept here, so that no program waits for the receiver with it that need not if it had gone: it is
// complete as soon as the announcement has gone. Not under back-pressure, nor where completion says that it has.
void Messenger::announce(Send& send, bool transmit) {
  const std::uint64_t bytes = send.buffers.bytes();
  const bool may_be_kept = !send.to->pressed && !send.awaits && !transmit;
  const bool is_kept = may_be_kept && bytes <= most_eager_ && send.to->kept + bytes <= kMostKept;
  if (send.inject || is_kept) send.copy_payload();
  if (is_kept) {
    send.kept = bytes;
    send.to->kept += bytes;
  }
  send.awaits = true;
  send.wire.head.operation = Operation::announce;
  send.describe_payload();
  send.prepare(sizeof(PacketHead) + send.wire.head.pieces * sizeof(RemotePiece), false);
}

void Messenger::start(Send& send) {
  Link& link = *send.to;
  if (link.queue.empty()) {
    const Push push_result = push(send);
    if (push_result == Push::whole) return was_pushed(send);
    if (push_result == Push::lost) return complete(send, link.error);
  }
  if (send.inject) send.copy_payload();
  link.queue.push_back(send);
  ++link.queued;
  if (!link.is_linked()) busy_.push_back(link);
}

// Of what is not streamed nothing stays behind: once a part of it were there, so would the rest have to be.
Messenger::Push Messenger::push(Send& send) noexcept {
  Link& link = *send.to;
  const bool whole = send.wire.head.operation != Operation::stream && send.outgoing.bytes <= kMostWhole;
  while (true) {
    const Result result =
        whole ? mailbox_.try_send_whole(link.peer, send.outgoing) : mailbox_.try_send(link.peer, send.outgoing);
    if (result.failed()) {
      if (link.error == 0) link.error = FI_ECONNRESET;
      return Push::lost;
    }
    if (send.outgoing.taken == send.outgoing.bytes) return Push::whole;
    if (!result.ok()) return Push::blocked;
  }
}

void Messenger::was_pushed(Send& send) {
  if (send.over) return complete(send, send.outcome);
  if (!send.awaits) return complete(send, 0);
  if (send.kept > 0 && !send.reported) {
    send.reported = true;
    report(send, 0);
  }
  if (send.wire.head.operation == Operation::stream && send.streamed < send.wanted_bytes) push_chunk(send);
}

void Messenger::complete(Send& send, int error) {
  if (send.over) error = send.outcome;  // the peer has it all, though it left before the chunk under way did
  if (send.kind != Send::Kind::control && !send.reported) report(send, error);
  if (send.is_injection) --injections_;
  forget(send);
}

void Messenger::forget(Send& send) {
  send.to->kept -= send.kept;
  send.copy.reset();
  sends_.give(send);
}

void Messenger::report(const Send& send, int error) {
  Completion completion;
  completion.context = send.context;
  completion.error = error;
  completion.wanted = send.wanted;
  completion.flags = send.kind == Send::Kind::remote ? send.report : FI_SEND | (send.tagged ? FI_TAGGED : FI_MSG);
  completion.tag = send.wire.head.tag;
  reporter_.sent(completion);
}

bool Messenger::flush() noexcept {
  bool moved = false;
  busy_.for_each([&](Link& link) { moved |= flush(link); });
  return moved;
}

bool Messenger::flush(Link& link) noexcept {
  bool moved = false;
  // What is streamed comes back to the queue's end, chunk by chunk: what the peer sends has its turn after one round.
  for (std::size_t left = link.queued; left > 0; --left) {
    Send* const send = link.queue.front();
    if (send == nullptr) break;
    if (send->outgoing.taken == 0 && !tell_pressure(link)) return moved;
    const std::uint64_t before = send->outgoing.taken;
    const Push result = push(*send);
    moved |= send->outgoing.taken != before || result != Push::blocked;
    if (result == Push::blocked) return moved;
    send->unlink();
    --link.queued;
    if (result == Push::whole) {
      was_pushed(*send);
    } else {
      complete(*send, link.error);
    }
  }
  if (tell_pressure(link) && link.queue.empty()) link.unlink();
  return moved;
}

void Messenger::control(Link& link, Operation operation, std::uint64_t request, std::uint64_t data) {
  if (link.peer == Mailbox::kNoPeer) return;
  PacketHead head{};
  head.operation = operation;
  head.request = request;
  head.data = data;
  if (link.queue.empty() && mailbox_.try_send(link.peer, std::as_bytes(std::span(&head, 1))).ok()) return;
  Send& send = sends_.take();
  send.to = &link;
  send.kind = Send::Kind::control;
  send.wire.head.operation = operation;
  send.wire.head.request = request;
  send.wire.head.data = data;
  send.prepare(sizeof(PacketHead), false);
  start(send);
}

void Messenger::say_hello(Link& link) {
  Send& send = sends_.take();
  send.to = &link;
  send.kind = Send::Kind::control;
  send.wire.head.operation = Operation::hello;
  send.wire.head.data = link.name.incarnation;
  const auto own = name_.bytes();
  static_assert(sizeof(own) <= sizeof(send.wire.table));
  std::memcpy(send.wire.table.data(), own.data(), own.size());
  send.prepare(sizeof(PacketHead) + kNameBytes, false);
  start(send);
}

int Messenger::send_to_self(const SendRequest& request) {
  const Envelope envelope{request.tag, request.data, request.buffers.bytes(), request.tagged, request.has_data};
  Send& send = new_send(request);
  Unexpected& message = unexpected_.take();
  message.from = request.to;
  message.envelope = envelope;
  message.own = &send;
  if (Receive* receive = matching_.receive_for(envelope, request.to->address); receive != nullptr) {
    accept(bind(*receive, envelope), message);
    return 0;
  }
  if (request.inject || envelope.bytes <= most_eager_) send.copy_payload();
  matching_.keep(message);
  if (request.delivery || (send.copy == nullptr && envelope.bytes > 0)) return 0;
  message.payload = std::move(send.copy);
  message.arrived = envelope.bytes;
  message.own = nullptr;
  buffered_ += kept_bytes(message);
  complete(send, 0);
  return 0;
}

}  // namespace wherry::mpi
