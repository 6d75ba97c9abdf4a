// SPDX-License-Identifier: Apache-2.0
#include "initiator.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <memory>
#include <utility>

namespace wherry::mpi {
namespace {

// Longer payloads stay in the initiator's memory until the target has read them, and cannot be injected.
static_assert(kMostInjected <= kMostOrdered);

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

Completion completion_of(const RemoteRequest& request) {
  Completion completion;
  completion.context = request.context;
  completion.flags = request.flags();
  completion.wanted = request.wanted;
  return completion;
}

std::unique_ptr<std::byte[]> one_behind_the_other(const Buffers& first, const Buffers& second) {
  auto copy = std::make_unique_for_overwrite<std::byte[]>(first.bytes() + second.bytes());
  first.gather(copy.get());
  second.gather(copy.get() + first.bytes());
  return copy;
}

}  // namespace

void Initiator::access(const RemoteRequest& request) {
  if (request.operation == Operation::write && request.source.bytes() > kMostOrdered) return write_long(request);
  Link& link = *request.to;
  Outbox::Waiting waiting{.copies = request.inject};
  Buffers payload = request.source;
  if (request.comparand.bytes() > 0) {
    waiting.copy = one_behind_the_other(request.source, request.comparand);
    payload = Buffers(waiting.copy.get(), request.source.bytes() + request.comparand.bytes());
  }
  Pending& access = accesses_.take();
  waiting.request = &access;
  access.to = &link;
  access.reports = true;
  access.completion = completion_of(request);
  access.result = request.result;
  if (request.result.bytes() <= kMostOrdered) link.asked += access.asked = request.result.bytes();
  access.is_injection = request.inject;
  if (request.inject) ++limits_.injections;
  Wire wire;
  wire.head = head_of(request);
  wire.head.request = Pool<Pending>::number_of(access);
  if (request.operation == Operation::read && mailbox_.reaches_private_memory(link.peer)) wire.head.flags |= kReaches;
  wire.name_ranges(request.targets());
  int error = 0;
  try {
    error = outbox_.send(link, wire, payload, std::move(waiting));
  } catch (...) {
    forget(access);
    throw;
  }
  if (error != 0) end(access, error);
}

void Initiator::write_long(const RemoteRequest& request) {
  Offer& offer = offers_.make(*request.to, request.source);
  Offers::report_later(offer, completion_of(request));
  Wire wire;
  wire.head = head_of(request);
  wire.head.operation = Operation::announce_write;
  wire.head.request = Offers::number_of(offer);
  wire.describe(offer.payload);
  wire.name_ranges(request.targets());
  int error = 0;
  try {
    error = outbox_.send(*request.to, wire, Buffers(), {.request = &offer});
  } catch (...) {
    offers_.withdraw(offer);
    throw;
  }
  if (error != 0) offers_.end(offer, error);
}

void Initiator::access_self(const RemoteRequest& request) {
  Completion completion = completion_of(request);
  completion.error = self_.carry_out(request, head_of(request));
  reporter_.sent(completion);
}

void Initiator::forget(Pending& access) noexcept {
  access.to->asked -= access.asked;
  if (access.is_injection) --limits_.injections;
  accesses_.give(access);
}

void Initiator::end(Pending& access, int error) {
  Completion completion = access.completion;
  completion.error = error;
  forget(access);
  reporter_.sent(completion);
}

void Initiator::on_accessed(Inflow& inflow) {
  Pending* access = accesses_.find(inflow.packet.request);
  const std::uint64_t outcome = inflow.packet.data;
  const bool fits = access != nullptr && access->to == inflow.link && access->sent && !access->answered &&
                    outcome <= INT32_MAX && (outcome != 0 || access->result.bytes() == 0);
  if (!fits) {
    inflow.error = FI_EIO;
    return;
  }
  end(*access, static_cast<int>(outcome));
}

// Returns null, with Inflow::error set, if the answer fits no pending request.
Initiator::Pending* Initiator::begin_answer(Inflow& inflow) {
  Pending* access = accesses_.find(inflow.packet.request);
  const bool fits = access != nullptr && access->to == inflow.link && access->sent && !access->answered &&
                    access->result.bytes() > 0 && access->result.bytes() == inflow.packet.bytes;
  if (!fits) {
    inflow.error = FI_EIO;
    return nullptr;
  }
  access->answered = true;
  return access;
}

void Initiator::on_reply(Inflow& inflow) {
  const Pending* access = begin_answer(inflow);
  if (access != nullptr) inflow.direct(*this, inflow.packet.request, access->result);
}

void Initiator::on_grant(Inflow& inflow) {
  const Pending* access = begin_answer(inflow);
  if (access == nullptr) return;
  Transfers::Source source{inflow.link, inflow.packet.data, {}, inflow.packet.pieces, false};
  if (inflow.read_pieces(source.pieces)) {
    transfers_.start(source, access->result, inflow.packet.bytes, *this, inflow.packet.request);
  } else {
    inflow.error = FI_EIO;
  }
}

void Initiator::transferred(std::uint64_t subject, int error) {
  if (Pending* access = accesses_.find(subject); access != nullptr) end(*access, error);
}

void Initiator::lose(const Link& link, int error) {
  accesses_.for_each_taken([&](Pending& access) {
    if (access.to == &link) end(access, error);
  });
}

}  // namespace wherry::mpi
