// SPDX-License-Identifier: Apache-2.0
#include "offers.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>

namespace wherry::mpi {
namespace {

// Bytes of one payload per turn: then other payloads, and packets that have arrived, have theirs.
constexpr std::uint64_t kMostPerTurn = 256 << 10;

}  // namespace

Offer& Offers::make(Link& to, const Buffers& payload) {
  Offer& offer = offers_.take();
  offer.to = &to;
  offer.payload = payload;
  return offer;
}

void Offers::report_later(Offer& offer, const Completion& completion) {
  offer.completion = completion;
  offer.reports = true;
}

void Offers::count_injection(Offer& offer) {
  offer.is_injection = true;
  ++limits_.injections;
}

void Offers::keep(Offer& offer) {
  offer.kept = offer.payload.bytes();
  offer.to->kept += offer.kept;
}

void Offers::hold(Offer& offer) {
  offer.is_held = true;
  ++offer.to->held;
}

void Offers::end(Offer& offer, int error) {
  const bool reports = offer.reports;
  Completion completion = offer.completion;
  completion.error = error;
  withdraw(offer);
  if (reports) reporter_.sent(completion);
}

void Offers::withdraw(Offer& offer) {
  if (offer.is_linked()) offer.unlink();
  if (offer.is_injection) --limits_.injections;
  if (offer.is_held) --offer.to->held;
  offer.to->kept -= offer.kept;
  offer.copy.reset();
  offers_.give(offer);
}

void Offers::on_want(Inflow& inflow) {
  Offer* offer = offers_.find(inflow.packet.request);
  const bool fits = offer != nullptr && offer->to == inflow.link && offer->sent && !offer->streams &&
                    inflow.packet.bytes != 0 && inflow.packet.bytes <= offer->payload.bytes();
  if (!fits) {
    inflow.error = FI_EIO;
    return;
  }
  offer->streams = true;
  offer->stream = inflow.packet.data;
  offer->wanted = inflow.packet.bytes;
  streams_.push_back(*offer);  // not sent at once: the peer's next packet may be `done`
}

void Offers::on_done(Inflow& inflow) {
  Offer* offer = offers_.find(inflow.packet.request);
  const std::uint64_t outcome = inflow.packet.data;
  if (offer == nullptr || offer->to != inflow.link || !offer->sent || outcome > INT32_MAX) {
    inflow.error = FI_EIO;
    return;
  }
  end(*offer, static_cast<int>(outcome));
}

bool Offers::stream() noexcept {
  bool moved = false;
  streams_.for_each([&](Offer& offer) { moved |= stream(offer); });
  return moved;
}

bool Offers::stream(Offer& offer) noexcept {
  Wire wire;
  wire.head.operation = Operation::stream;
  wire.head.request = offer.stream;
  const std::uint64_t end = std::min(offer.wanted, offer.streamed + kMostPerTurn);
  const std::uint64_t before = offer.streamed;
  while (offer.streamed < end) {
    wire.head.data = offer.streamed;
    std::uint64_t bytes = offer.wanted - offer.streamed;
    if (outbox_.push_chunk(*offer.to, wire, offer.payload, offer.streamed, bytes) != Outbox::Push::sent) break;
    offer.streamed += bytes;
  }
  if (offer.streamed == offer.wanted) offer.unlink();
  return offer.streamed != before;
}

void Offers::lose(Link& link, int error) {
  offers_.for_each_taken([&](Offer& offer) {
    if (offer.to == &link) end(offer, error);
  });
}

void Offers::revoke(const Region& region) {
  offers_.for_each_taken([&](Offer& offer) {
    if (std::ranges::find(offer.regions, &region) == offer.regions.end()) return;
    offer.copy_payload();
    offer.regions.fill(nullptr);
  });
}

}  // namespace wherry::mpi
