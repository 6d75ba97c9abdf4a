// SPDX-License-Identifier: Apache-2.0
// One-sided operations of peers on this process's memory. Nothing is touched before Regions has found it allowed.
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "atomics.hpp"
#include "messenger.hpp"

namespace wherry::mpi {
namespace {

// Answers that wait for room at one peer: more than a peer that keeps the rules has requests under way.
constexpr std::size_t kMostAnswers = 1 << 17;
// The longest payload of a `write`: longer ones are announced.
constexpr std::uint64_t kMostUnasked = 1 << 20;

// The ranges at the end of the head, whose sum is what it says. At most kMostRemoteRanges: is_consistent has looked.
bool read_ranges(const Inflow& inflow, std::array<RemoteRange, kMostRemoteRanges>& ranges) {
  const PacketHead& packet = inflow.packet;
  const std::size_t offset = sizeof(PacketHead) + packet.pieces * sizeof(RemotePiece);
  std::memcpy(ranges.data(), inflow.head.data() + offset, packet.ranges * sizeof(RemoteRange));
  std::uint64_t left = packet.bytes;
  for (std::size_t i = 0; i < packet.ranges; ++i) {
    if (ranges[i].bytes > left) return false;
    left -= ranges[i].bytes;
  }
  return left == 0;
}

bool are_of_whole_elements(const Buffers& target, unsigned datatype) {
  return std::ranges::all_of(target.ranges(),
                             [&](const iovec& range) { return range.iov_len % bytes_of_datatype(datatype) == 0; });
}

}  // namespace

Regions::Found Messenger::find(std::span<const RemoteRange> ranges, const PacketHead& packet) const {
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

// Of the packet in `inflow`. False: the peer breaks the rules.
bool Messenger::find_targets(Inflow& inflow, Regions::Found& found) const {
  std::array<RemoteRange, kMostRemoteRanges> ranges;
  if (!read_ranges(inflow, ranges) || inflow.link->queued > kMostAnswers) {
    inflow.error = FI_EIO;
    return false;
  }
  found = find({ranges.data(), inflow.packet.ranges}, inflow.packet);
  return true;
}

void Messenger::note_access(const PacketHead& packet, const Link* from,
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

// What is refused is received all the same, and dropped.
Receive& Messenger::new_target(const Inflow& inflow, const Regions::Found& found) {
  Receive& receive = receives_.take();
  receive.role = Receive::Role::write;
  receive.from = inflow.link;
  receive.buffers = found.buffers;
  receive.regions = found.regions;
  receive.refused = found.error;
  receive.envelope.bytes = inflow.packet.bytes;
  receive.envelope.data = inflow.packet.data;
  receive.envelope.has_data = (inflow.packet.flags & kHasData) != 0;
  receive.peer_request = inflow.packet.request;
  ++inflow.link->held;
  return receive;
}

void Messenger::on_write(Inflow& inflow) {
  Regions::Found found;
  if (inflow.packet.bytes > kMostUnasked) inflow.error = FI_EIO;
  if (inflow.error != 0 || !find_targets(inflow, found)) return;
  inflow.receive = &new_target(inflow, found);
  inflow.into = found.buffers;
}

void Messenger::on_announce_write(Inflow& inflow) {
  Regions::Found found;
  if (!find_targets(inflow, found)) return;
  Receive& receive = new_target(inflow, found);
  if (!read_table(inflow, receive.remote, receive.remote_pieces)) {
    inflow.error = FI_EIO;
    return finish(receive, FI_EIO);
  }
  if (found.error != 0) return finish(receive, found.error);
  start_pull(receive);
}

void Messenger::finish_write(Receive& receive, int error) {
  if (error == 0) error = receive.refused;
  PacketHead packet{};
  packet.operation = Operation::write;
  packet.flags = receive.envelope.has_data ? kHasData : 0;
  packet.data = receive.envelope.data;
  packet.bytes = receive.envelope.bytes;
  Link& from = *receive.from;
  const auto regions = receive.regions;
  control(from, Operation::done, receive.peer_request, static_cast<std::uint64_t>(error));
  receives_.give(receive);
  --from.held;
  if (error == 0) note_access(packet, &from, regions);
}

void Messenger::on_read(Inflow& inflow) {
  Regions::Found found;
  if (!find_targets(inflow, found)) return;
  const PacketHead& packet = inflow.packet;
  if (found.error != 0 || packet.bytes == 0) {
    return control(*inflow.link, Operation::done, packet.request, static_cast<std::uint64_t>(found.error));
  }
  Send& answer = new_answer(inflow, Operation::reply);
  answer.buffers = found.buffers;
  answer.regions = found.regions;
  // A short one that finds no room is copied: what is written after it must not be seen by it.
  answer.inject = packet.bytes <= kMostOrdered;
  if (packet.bytes > kMostOrdered && (packet.flags & kReaches) != 0) {
    answer.wire.head.operation = Operation::grant;
    answer.wire.head.data = Pool<Send>::number_of(answer);
    answer.awaits = true;
    answer.inject = false;
    answer.describe_payload();
  }
  answer.prepare(answer.head_bytes(), !answer.awaits);
  start(answer);
  note_access(packet, inflow.link, found.regions);
}

Send& Messenger::new_answer(const Inflow& inflow, Operation operation) {
  Send& answer = sends_.take();
  answer.to = inflow.link;
  answer.kind = Send::Kind::control;
  answer.wire.head.operation = operation;
  answer.wire.head.request = inflow.packet.request;
  answer.wire.head.bytes = inflow.packet.bytes;
  return answer;
}

void Messenger::on_atomic(Inflow& inflow) {
  const std::uint64_t bytes = operand_bytes(inflow.packet);
  inflow.operands = std::make_unique_for_overwrite<std::byte[]>(std::max<std::uint64_t>(bytes, 1));
  inflow.into = Buffers(inflow.operands.get(), bytes);
}

// The operands are there.
void Messenger::carry_out(Inflow& inflow) {
  const auto operands = std::move(inflow.operands);
  Regions::Found found;
  if (!find_targets(inflow, found)) return;
  const PacketHead& packet = inflow.packet;
  if (found.error != 0 || (packet.flags & kFetches) == 0) {
    if (found.error == 0) run_atomic(packet, found.buffers, operands.get(), nullptr);
    control(*inflow.link, Operation::done, packet.request, static_cast<std::uint64_t>(found.error));
  } else {
    Send& answer = new_answer(inflow, Operation::reply);
    answer.copy = std::make_unique_for_overwrite<std::byte[]>(packet.bytes);
    run_atomic(packet, found.buffers, operands.get(), answer.copy.get());
    answer.buffers = Buffers(answer.copy.get(), packet.bytes);
    answer.prepare(sizeof(PacketHead), true);
    start(answer);
  }
  if (found.error == 0) note_access(packet, inflow.link, found.regions);
}

void Messenger::serve(const Regions& regions, Access access) {
  regions_ = &regions;
  served_ = access;
}

void Messenger::revoke(const Region& region) {
  const auto names = [&](const auto& request) {
    return std::ranges::find(request.regions, &region) != request.regions.end();
  };
  sends_.for_each_taken([&](Send& send) {
    if (names(send) && !send.awaits) send.copy_payload();
    std::ranges::replace(send.regions, const_cast<Region*>(&region), nullptr);
  });
  receives_.for_each_taken([&](Receive& receive) {
    if (names(receive)) revoke(receive);
  });
}

// A write that is still arriving: the rest of it is dropped.
void Messenger::revoke(Receive& receive) {
  receive.refused = FI_ENOKEY;
  receive.regions.fill(nullptr);
  for (const auto& inflow : inflows_) {
    if (inflow != nullptr && inflow->receive == &receive) inflow->into = Buffers();
  }
  if (!receive.is_linked()) return;
  detach(receive);
  finish(receive, FI_ENOKEY);
}

}  // namespace wherry::mpi
