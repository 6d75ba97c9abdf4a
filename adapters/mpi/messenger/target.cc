// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "atomics.hpp"
#include "limits.hpp"

namespace wherry::mpi {
namespace {

// Answers queued for one peer: more than the requests that a correct peer has under way.
constexpr std::size_t kMostAnswers = 1 << 17;
// Bytes of copies among these, and of this side's own injected operations.
constexpr std::uint64_t kMostCopied = 64 << 20;
static_assert(kMostCopied >= 2 * kMostAsked);

bool are_of_whole_elements(const Buffers& target, unsigned datatype) {
  return std::ranges::all_of(target.ranges(),
                             [&](const iovec& range) { return range.iov_len % bytes_of_datatype(datatype) == 0; });
}

Wire reply_to(const PacketHead& packet) {
  Wire wire;
  wire.head.operation = Operation::reply;
  wire.head.request = packet.request;
  wire.head.bytes = packet.bytes;
  return wire;
}

void carry_out_on(const Buffers& target, const RemoteRequest& request, const PacketHead& head) {
  if (request.operation == Operation::write) return request.source.copy_to(target);
  if (request.operation == Operation::read) return target.copy_to(request.result);
  std::vector<std::byte> operands(request.source.bytes() + request.comparand.bytes());
  request.source.gather(operands.data());
  request.comparand.gather(operands.data() + request.source.bytes());
  std::vector<std::byte> before(head.bytes);
  run_atomic(head, target, operands.data(), before.data());
  request.result.scatter(0, before);
}

}  // namespace

Regions::Found Target::find(std::span<const RemoteRange> ranges, const PacketHead& packet) const {
  const Access access = access_of(packet);
  if (regions_ == nullptr || (access.reads && !served_.reads) || (access.writes && !served_.writes)) {
    return Regions::Found::nothing(FI_EACCES);
  }
  Regions::Found found = regions_->find(ranges, access);
  if (packet.operation == Operation::atomic && !are_of_whole_elements(found.buffers, packet.datatype)) {
    return Regions::Found::nothing(FI_EINVAL);
  }
  return found;
}

// Finds the memory that the packet in `inflow` names. Returns false, with Inflow::error set, if the peer violates the
// protocol.
bool Target::find(Inflow& inflow, Regions::Found& found) const {
  std::array<RemoteRange, kMostRemoteRanges> ranges;
  if (!inflow.read_ranges(ranges)) {
    inflow.error = FI_EIO;
  } else if (inflow.link->queued > kMostAnswers || inflow.link->copied > kMostCopied) {
    inflow.error = FI_ENOBUFS;
  }
  if (inflow.error != 0) return false;
  found = find({ranges.data(), inflow.packet.ranges}, inflow.packet);
  return true;
}

int Target::carry_out(const RemoteRequest& request, const PacketHead& head) {
  const Regions::Found found = find(request.targets(), head);
  if (found.error != 0) return found.error;
  carry_out_on(found.buffers, request, head);
  note_access(head, request.to, found.regions);
  return 0;
}

void Target::note_access(const PacketHead& packet, const Link* from,
                         const std::array<Region*, kMostRemoteRanges>& regions) {
  Completion completion;
  completion.flags = event_of(packet) | ((packet.flags & kHasData) != 0 ? FI_REMOTE_CQ_DATA : 0);
  completion.bytes = packet.bytes;
  completion.data = packet.data;
  completion.source = source_of(from);
  completion.wanted = (packet.flags & kHasData) != 0;
  if (access_of(packet).writes) {
    for (Region* region : regions) {
      if (region != nullptr) region->on_write();
    }
  }
  reporter_.accessed(completion);
}

// Begins to receive a payload. If the access was refused, the payload is received and dropped.
Target::Arriving& Target::begin(const Inflow& inflow, const Regions::Found& found) {
  Arriving& access = accesses_.take();
  access.from = inflow.link;
  access.packet = inflow.packet;
  access.refused = found.error;
  access.regions = found.regions;
  ++inflow.link->held;
  return access;
}

void Target::forget(Arriving& access) {
  --access.from->held;
  accesses_.give(access);
}

void Target::on_write(Inflow& inflow) {
  Regions::Found found;
  if (inflow.packet.bytes > kMostUnasked) inflow.error = FI_EIO;
  if (inflow.error != 0 || !find(inflow, found)) return;
  inflow.direct(*this, Pool<Arriving>::number_of(begin(inflow, found)), found.buffers);
}

void Target::on_announce_write(Inflow& inflow) {
  Regions::Found found;
  if (!find(inflow, found)) return;
  Transfers::Source source{inflow.link, inflow.packet.request, {}, inflow.packet.pieces};
  if (!inflow.read_pieces(source.pieces)) {
    inflow.error = FI_EIO;
    return;
  }
  if (found.error != 0) {
    return outbox_.control(*inflow.link, Operation::done, source.offer, static_cast<std::uint64_t>(found.error));
  }
  transfers_.start(source, found.buffers, inflow.packet.bytes, *this, Pool<Arriving>::number_of(begin(inflow, found)));
}

void Target::on_atomic(Inflow& inflow) {
  Arriving& access = begin(inflow, {});
  access.operands.resize(operand_bytes(inflow.packet));
  inflow.direct(*this, Pool<Arriving>::number_of(access), Buffers(access.operands.data(), access.operands.size()));
}

void Target::arrived(Inflow& inflow) {
  Arriving* access = accesses_.find(inflow.subject);
  if (access == nullptr) return;
  if (access->packet.operation == Operation::atomic) {
    finish_atomic(inflow, *access);
  } else {
    outbox_.control(*access->from, Operation::accessed, access->packet.request,
                    static_cast<std::uint64_t>(access->refused));
    finish_write(*access, access->refused);
  }
}

void Target::lost(Inflow& inflow) {
  if (Arriving* access = accesses_.find(inflow.subject); access != nullptr) forget(*access);
}

void Target::transferred(std::uint64_t subject, int error) {
  if (Arriving* access = accesses_.find(subject); access != nullptr) finish_write(*access, error);
}

// Called after the peer got its answer.
void Target::finish_write(Arriving& access, int error) {
  const Link* from = access.from;
  PacketHead packet = access.packet;
  packet.operation = Operation::write;
  const auto regions = access.regions;
  forget(access);
  if (error == 0) note_access(packet, from, regions);
}

// Called when all operands have arrived.
void Target::finish_atomic(Inflow& inflow, Arriving& access) {
  Regions::Found found;
  if (find(inflow, found)) {
    const PacketHead& packet = inflow.packet;
    const bool fetches = (packet.flags & kFetches) != 0;
    std::array<std::byte, kMostAtomicBytes> before;
    if (found.error == 0) run_atomic(packet, found.buffers, access.operands.data(), fetches ? before.data() : nullptr);
    if (found.error != 0 || !fetches) {
      refuse(inflow, found.error);
    } else {
      (void)outbox_.send(*inflow.link, reply_to(packet), Buffers(before.data(), packet.bytes), {.copies = true});
    }
    if (found.error == 0) note_access(packet, inflow.link, found.regions);
  }
  forget(access);
}

void Target::on_read(Inflow& inflow) {
  Regions::Found found;
  if (!find(inflow, found)) return;
  const PacketHead& packet = inflow.packet;
  if (found.error != 0 || packet.bytes == 0) return refuse(inflow, found.error);
  if (packet.bytes > kMostOrdered) {
    grant(inflow, found);
  } else {
    // Copied if there is no room: the read must not see later writes.
    (void)outbox_.send(*inflow.link, reply_to(packet), found.buffers, {.copies = true, .regions = found.regions});
  }
  note_access(packet, inflow.link, found.regions);
}

void Target::grant(const Inflow& inflow, const Regions::Found& found) {
  const bool reaches = (inflow.packet.flags & kReaches) != 0;
  Offer& offer = offers_.make(*inflow.link, reaches ? Buffers() : found.buffers);
  if (!reaches) offer.regions = found.regions;
  Offers::hold(offer);
  Wire wire = reply_to(inflow.packet);
  wire.head.operation = Operation::grant;
  wire.head.data = Offers::number_of(offer);
  wire.describe(found.buffers);
  if (outbox_.send(*inflow.link, wire, Buffers(), {.request = &offer}) != 0) offers_.withdraw(offer);
}

void Target::revoke(const Region& region) {
  outbox_.revoke(region);
  offers_.revoke(region);
  accesses_.for_each_taken([&](Arriving& access) {
    if (std::ranges::find(access.regions, &region) == access.regions.end()) return;
    access.refused = FI_ENOKEY;
    access.regions.fill(nullptr);
    const std::uint64_t number = Pool<Arriving>::number_of(access);
    links_.for_each_inflow(*this, number, [](Inflow& inflow) { inflow.into = Buffers(); });
    transfers_.cancel(*this, number, FI_ENOKEY);
  });
}

}  // namespace wherry::mpi
