// SPDX-License-Identifier: Apache-2.0
#include "outbox.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

namespace wherry::mpi {
namespace {

// A chunk waits until the section itself has room for this many bytes. With smaller sections it may go into the
// overflow.
constexpr std::uint64_t kLeastChunk = 16 << 10;
constexpr std::uint64_t kSmallSection = 4 * kLeastChunk;
// Bytes of the section that chunks leave free, for short messages that follow.
constexpr std::uint64_t kKeptForShort = std::uint64_t{4} << 10;
// Longest chunk: the receiver can copy one while the next is written.
constexpr std::uint64_t kMostChunk = 128 << 10;

using Pieces = std::array<iovec, kMostBuffers + 1>;

std::size_t pieces_of(const Wire& wire, const Buffers& payload, Pieces& pieces) {
  pieces[0] = {const_cast<std::byte*>(wire.data()), wire.bytes};
  std::size_t count = 1;
  for (const iovec& range : payload.ranges()) {
    if (range.iov_len > 0) pieces[count++] = range;
  }
  return count;
}

}  // namespace

Outbox::Push Outbox::write(Link& link, Mailbox::Outgoing& message) noexcept {
  const Result result = mailbox_.try_send_whole(link.peer, message);
  if (result.ok()) return Push::sent;
  if (result.would_block()) return Push::blocked;
  if (link.error == 0) link.error = FI_ECONNRESET;
  return Push::lost;
}

Outbox::Push Outbox::push(Link& link, const Wire& wire, const Buffers& payload) noexcept {
  Pieces pieces;
  const std::size_t count = pieces_of(wire, payload, pieces);
  Mailbox::Outgoing message{{pieces.data(), count}, wire.bytes + payload.bytes()};
  return write(link, message);
}

Outbox::Push Outbox::push_chunk(Link& link, Wire& wire, const Buffers& payload, std::uint64_t offset,
                                std::uint64_t& bytes) noexcept {
  if (!link.queue.empty()) return Push::blocked;
  std::uint64_t most = std::min(bytes, kMostChunk);
  if (mailbox_.section(link.peer).outgoing >= kSmallSection) {
    const std::uint64_t around = wire.bytes + kKeptForShort;
    const std::uint64_t least = std::min(most, kLeastChunk) + around;
    const std::uint64_t room = mailbox_.room(link.peer, static_cast<std::size_t>(least));
    if (room == 0) return Push::blocked;
    most = room > around ? std::min(most, room - around) : std::min(most, kLeastChunk);
  } else {
    most = std::min(most, kLeastChunk);
  }
  const std::span<std::byte> chunk = payload.at(offset, most);
  wire.head.bytes = bytes = chunk.size();
  return push(link, wire, Buffers(chunk.data(), chunk.size()));
}

int Outbox::send(Link& link, const Wire& wire, const Buffers& payload, Waiting waiting) {
  const Push pushed = link.queue.empty() ? push(link, wire, payload) : Push::blocked;
  if (pushed == Push::lost) return link.error;
  if (pushed == Push::blocked) {
    queue(link, wire, payload, std::move(waiting));
    return 0;
  }
  if (waiting.request != nullptr) waiting.request->sent = true;
  if (waiting.completion != nullptr) reporter_.sent(*waiting.completion);
  return 0;
}

void Outbox::queue(Link& link, const Wire& wire, const Buffers& payload, Waiting&& waiting) {
  Buffers kept = payload;
  if (waiting.copies && waiting.copy == nullptr && payload.bytes() > 0) kept = payload.copied(waiting.copy);
  Packet& packet = packets_.take();
  packet.to = &link;
  packet.wire = wire;
  packet.payload = kept;
  packet.copy = std::move(waiting.copy);
  packet.copied = packet.copy == nullptr ? 0 : kept.bytes();
  link.copied += packet.copied;
  packet.regions = waiting.regions;
  packet.request = waiting.request;
  packet.reports = waiting.completion != nullptr;
  if (packet.reports) packet.completion = *waiting.completion;
  link.queue.push_back(packet);
  ++link.queued;
  visit_again(link);
}

void Outbox::control(Link& link, Operation operation, std::uint64_t request, std::uint64_t data) {
  if (link.peer == Mailbox::kNoPeer) return;
  Wire wire;
  wire.head.operation = operation;
  wire.head.request = request;
  wire.head.data = data;
  if (link.queue.empty() && mailbox_.try_send(link.peer, std::as_bytes(std::span(&wire.head, 1))).ok()) return;
  (void)send(link, wire);
}

void Outbox::notify(Link& link, Operation notice) noexcept {
  link.notice = notice;
  if (link.peer != Mailbox::kNoPeer && !push_notice(link)) visit_again(link);
}

// Returns false if there is no room yet.
bool Outbox::push_notice(Link& link) noexcept {
  if (link.notice == Operation::none) return true;
  Wire wire;
  wire.head.operation = link.notice;
  if (push(link, wire) == Push::blocked) return false;
  link.notice = Operation::none;
  return true;
}

void Outbox::has_left(Packet& packet, int error) {
  if (packet.request != nullptr) packet.request->sent = true;
  if (packet.reports) {
    packet.completion.error = error;
    reporter_.sent(packet.completion);
  }
  packet.to->copied -= packet.copied;
  packet.copy.reset();
  packets_.give(packet);
}

bool Outbox::flush() noexcept {
  bool moved = false;
  busy_.for_each([&](Link& link) { moved |= flush(link); });
  return moved;
}

bool Outbox::flush(Link& link) noexcept {
  bool moved = false;
  while (push_notice(link)) {
    Packet* const packet = link.queue.front();
    if (packet == nullptr) {
      link.unlink();
      break;
    }
    const Push pushed = push(link, packet->wire, packet->payload);
    if (pushed == Push::blocked) break;
    moved = true;
    packet->unlink();
    --link.queued;
    has_left(*packet, pushed == Push::lost ? link.error : 0);
  }
  return moved;
}

void Outbox::lose(Link& link, int error) {
  link.notice = Operation::none;
  if (link.is_linked()) link.unlink();
  while (Packet* packet = link.queue.pop_front()) has_left(*packet, error);
  link.queued = 0;
}

void Outbox::revoke(const Region& region) {
  packets_.for_each_taken([&](Packet& packet) {
    if (std::ranges::find(packet.regions, &region) == packet.regions.end()) return;
    packet.copy_payload();
    packet.regions.fill(nullptr);
  });
}

}  // namespace wherry::mpi
