// SPDX-License-Identifier: Apache-2.0
// Long messages through the section: both sides copy at the same time, one into it and the other out of it, in user
// space. A receiver that could as well read its sender's memory asks for this where the section is large enough, and
// waits for no sender that does something else: what has not come in time it reads itself, from the end on. So a chunk
// may arrive that is no longer needed; it is dropped.
//
// A peer that sends many of them is given a lane: its section then is as large as a stream's ring, which comes round to
// a line only after the reader's cache has lost it. A few peers at a time have one, as long as they use it.
#include <rdma/fi_errno.h>

#include <algorithm>

#include "arch/ticks.hpp"
#include "messenger.hpp"

namespace wherry::mpi {
namespace {

// Smaller sections keep two cores waiting for each other.
constexpr std::size_t kLeastSection = std::size_t{256} << 10;
// Sent at once: what arrives in vain at most, and after what another message has its turn.
constexpr std::uint64_t kChunk = 256 << 10;
// The sender has this long for the next bytes: a few times what copying them takes, and less than a wake-up.
constexpr std::uint64_t kStall = 100'000;  // ticks: 20 to 100 us
// Read at once where the sender stalls.
constexpr std::uint64_t kRescue = 256 << 10;
constexpr std::uint32_t kMostPenalty = 63;
// Lanes of this endpoint, and what a peer has announced before it gets one: its pages come into being, which takes
// about as long as copying this.
constexpr std::size_t kMostLanes = 4;
constexpr std::uint64_t kLaneAfter = 16 << 20;
constexpr std::uint64_t kLaneIdle = 2'000'000'000;  // ticks: about a second

std::uint64_t goal_of(const Receive& receive) { return std::min(receive.envelope.bytes, receive.buffers.bytes()); }

}  // namespace

/// Where processes wait for processors, the one that runs does best to copy by itself.
bool Messenger::prefers_stream(Link& from, std::uint64_t bytes) {
  if (is_oversubscribed()) return false;
  consider_lane(from, bytes);
  if (mailbox_.section(from.peer).incoming < kLeastSection) return false;
  if (from.to_be_read == 0) return true;
  --from.to_be_read;
  return false;
}

void Messenger::consider_lane(Link& link, std::uint64_t bytes) {
  const std::uint64_t now = arch::ticks();
  if (now - link.heard > kLaneIdle) link.announced = 0;
  link.heard = now;
  link.announced += bytes;
  if (link.has_lane || link.announced < kLaneAfter) return;
  link.announced = 0;
  if (lanes_.size() >= kMostLanes) return;
  lanes_.push_back(&link);
  link.has_lane = true;
  mailbox_.widen(link.peer, true);
}

void Messenger::close_idle_lanes() noexcept {
  const std::uint64_t now = arch::ticks();
  for (std::size_t i = lanes_.size(); i > 0; --i) {
    if (now - lanes_[i - 1]->heard > kLaneIdle) close_lane(*lanes_[i - 1]);
  }
}

void Messenger::close_lane(Link& link) noexcept {
  if (!link.has_lane) return;
  link.has_lane = false;
  std::erase(lanes_, &link);
  mailbox_.widen(link.peer, false);
}

void Messenger::want(Receive& receive, std::uint64_t goal) {
  receive.streams = true;
  Send& want = sends_.take();
  want.to = receive.from;
  want.kind = Send::Kind::control;
  want.wire.head.operation = Operation::want;
  want.wire.head.request = receive.peer_request;
  want.wire.head.data = Pool<Receive>::number_of(receive);
  want.wire.head.bytes = goal;
  want.prepare(sizeof(PacketHead), false);
  start(want);
}

/// Only queued: the next packet of the peer may say that it needs no more.
void Messenger::push_chunk(Send& send) {
  send.prepare_chunk(kChunk);
  Link& link = *send.to;
  link.queue.push_back(send);
  ++link.queued;
  if (!link.is_linked()) busy_.push_back(link);
}

/// The receiver has all of it, though a chunk waits to be sent.
void Messenger::end_stream(Send& send, int error) {
  if (send.outgoing.taken != 0) {
    send.over = true;
    send.outcome = error;
    return;
  }
  send.unlink();
  --send.to->queued;
  complete(send, error);
}

/// Bytes of a chunk have arrived.
void Messenger::streamed(Inflow& inflow) {
  if (inflow.receive == nullptr) return;
  Receive& receive = *inflow.receive;
  inflow.link->heard = arch::ticks();
  receive.arrived = inflow.arrived;
  if (receive.arrived + receive.pulled < goal_of(receive)) return;
  if (receive.pulled == 0) inflow.link->penalty = 0;
  detach(receive);
  finish(receive, 0);
}

/// What may still come of it is dropped.
void Messenger::detach(Receive& receive) {
  if (receive.is_linked()) receive.unlink();
  receive.streams = false;
  Inflow& inflow = inflow_of(receive.from->peer);
  if (inflow.receive != &receive) return;
  inflow.receive = nullptr;
  inflow.into = Buffers();
}

/// True if anything was read.
bool Messenger::end_stalled_streams() noexcept {
  const std::uint64_t now = arch::ticks();
  Receive* const stalled = streams_.find([&](const Receive& receive) { return now - receive.from->heard >= kStall; });
  return stalled != nullptr && pull_from_back(*stalled);
}

bool Messenger::pull_from_back(Receive& receive) {
  const std::uint64_t left = goal_of(receive) - receive.arrived - receive.pulled;
  const std::uint64_t part = std::min(left, kRescue);
  if (!read_from_sender(receive, goal_of(receive) - receive.pulled - part, part)) {
    receive.unlink();  // it is streamed or lost
    return true;
  }
  if (receive.pulled == 0) {
    Link& link = *receive.from;
    link.penalty = std::min(2 * link.penalty + 1, kMostPenalty);
    link.to_be_read = link.penalty;
  }
  receive.pulled += part;
  if (part < left) return true;
  detach(receive);
  finish(receive, 0);
  return true;
}

}  // namespace wherry::mpi
