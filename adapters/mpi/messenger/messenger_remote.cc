// SPDX-License-Identifier: Apache-2.0
// One-sided operations of this endpoint, from the request to the answer.
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "messenger.hpp"

namespace wherry::mpi {
namespace {

PacketHead head_of(const RemoteRequest& request) {
  PacketHead head{};
  head.operation = request.operation;
  head.flags = static_cast<std::uint8_t>((request.has_data ? kHasData : 0) | (request.fetches ? kFetches : 0));
  head.datatype = request.datatype;
  head.action = request.action;
  head.data = request.data;
  head.bytes = request.bytes();
  return head;
}

std::unique_ptr<std::byte[]> one_behind_the_other(const Buffers& first, const Buffers& second) {
  auto copy = std::make_unique_for_overwrite<std::byte[]>(first.bytes() + second.bytes());
  first.gather(copy.get());
  second.gather(copy.get() + first.bytes());
  return copy;
}

// What is longer stays in the initiator's memory until the target has read it.
static_assert(kMostInjected <= kMostOrdered);

}  // namespace

int Messenger::access(const RemoteRequest& request) {
  Link& link = *request.to;
  if (link.self) return access_self(request);
  if (const int status = make_way(link, request.inject); status != 0) return status;
  Send& send = new_remote(request);
  note_injection(send);
  if (request.operation == Operation::write && request.source.bytes() > kMostOrdered) {
    send.wire.head.operation = Operation::announce_write;
    send.describe_payload();
  }
  send.name_ranges(request.targets());
  send.prepare(send.head_bytes(), send.wire.head.operation != Operation::announce_write);
  start(send);
  return 0;
}

Send& Messenger::new_remote(const RemoteRequest& request) {
  Send& send = sends_.take();
  send.to = request.to;
  send.context = request.context;
  send.kind = Send::Kind::remote;
  send.wanted = request.wanted;
  send.inject = request.inject;
  send.awaits = true;
  send.report = request.flags();
  send.wire.head = head_of(request);
  send.wire.head.request = Pool<Send>::number_of(send);
  if (request.operation == Operation::read && mailbox_.reaches_private_memory(request.to->peer)) {
    send.wire.head.flags |= kReaches;
  }
  send.result = request.result;
  send.buffers = request.source;
  if (request.comparand.bytes() > 0) {
    send.copy = one_behind_the_other(request.source, request.comparand);
    send.buffers = Buffers(send.copy.get(), request.source.bytes() + request.comparand.bytes());
  }
  return send;
}

// Null: the peer answers what it was not asked, or so.
Send* Messenger::answered(const Inflow& inflow) {
  Send* send = sends_.find(inflow.packet.request);
  const bool fits = send != nullptr && send->to == inflow.link && send->kind == Send::Kind::remote && send->awaits &&
                    !send->is_linked() && send->result.bytes() > 0 && send->result.bytes() == inflow.packet.bytes;
  if (!fits) return nullptr;
  send->awaits = false;
  return send;
}

void Messenger::on_reply(Inflow& inflow) {
  inflow.answered = answered(inflow);
  if (inflow.answered == nullptr) {
    inflow.error = FI_EIO;
    return;
  }
  inflow.into = inflow.answered->result;
}

void Messenger::on_grant(Inflow& inflow) {
  Send* send = answered(inflow);
  if (send == nullptr || (send->wire.head.flags & kReaches) == 0) {
    inflow.error = FI_EIO;
    return;
  }
  Receive& receive = receives_.take();
  receive.role = Receive::Role::read;
  receive.from = inflow.link;
  receive.buffers = send->result;
  receive.envelope.bytes = inflow.packet.bytes;
  receive.peer_request = inflow.packet.data;
  receive.request = inflow.packet.request;
  if (read_table(inflow, receive.remote, receive.remote_pieces)) return start_pull(receive);
  inflow.error = FI_EIO;
  finish(receive, FI_EIO);
}

void Messenger::finish_read(Receive& receive, int error) {
  control(*receive.from, Operation::done, receive.peer_request, static_cast<std::uint64_t>(error));
  Send* send = sends_.find(receive.request);
  receives_.give(receive);
  if (send != nullptr) complete(*send, error);
}

namespace {

Completion completion_of(const RemoteRequest& request, int error) {
  Completion completion;
  completion.context = request.context;
  completion.flags = request.flags();
  completion.error = error;
  completion.wanted = request.wanted;
  return completion;
}

void carry_out_here(const RemoteRequest& request, const PacketHead& head, const Buffers& target) {
  if (request.operation == Operation::write) return request.source.copy_to(target);
  if (request.operation == Operation::read) return target.copy_to(request.result);
  const auto operands = one_behind_the_other(request.source, request.comparand);
  const auto before = std::make_unique_for_overwrite<std::byte[]>(head.bytes);
  run_atomic(head, target, operands.get(), before.get());
  request.result.scatter(0, {before.get(), head.bytes});
}

}  // namespace

// At once, whatever it is: both sides are here.
int Messenger::access_self(const RemoteRequest& request) {
  const PacketHead head = head_of(request);
  const Regions::Found found = find(request.targets(), head);
  if (found.error == 0) {
    carry_out_here(request, head, found.buffers);
    note_access(head, request.to, found.regions);
  }
  reporter_.sent(completion_of(request, found.error));
  return 0;
}

}  // namespace wherry::mpi
