// SPDX-License-Identifier: Apache-2.0
#include "transfers.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <span>

#include "arch/ticks.hpp"

namespace wherry::mpi {
namespace {

// Bytes that one call reads from senders' memory, at most, before it looks at the mailbox again.
constexpr std::uint64_t kPullAtOnce = 8 << 20;
// Smallest section for streaming: with smaller ones, the two cores wait for each other.
constexpr std::size_t kLeastSection = std::size_t{256} << 10;
// Time that a sender has for its next bytes: a few times as long as copying them, and less than a wake-up.
constexpr std::uint64_t kStall = 100'000;  // ticks: 20 to 100 us
// Bytes that the receiver reads at once if the sender stalls.
constexpr std::uint64_t kPullWhenStalled = 256 << 10;
constexpr std::uint32_t kMostPenalty = 63;

// Returns where byte `offset` of the announced payload lies, and how many bytes follow it without a gap.
RemotePiece remote_at(const Transfer& transfer, std::uint64_t offset) {
  for (std::size_t i = 0; i < transfer.remote_pieces; ++i) {
    const RemotePiece& piece = transfer.remote[i];
    if (offset < piece.bytes) return {piece.address + offset, piece.bytes - offset};
    offset -= piece.bytes;
  }
  return {};
}

}  // namespace

void Transfers::start(const Source& source, const Buffers& into, std::uint64_t goal, TransferOwner& owner,
                      std::uint64_t subject) {
  Transfer& transfer = transfers_.take();
  transfer.from = source.link;
  transfer.into = into;
  transfer.goal = goal;
  transfer.offer = source.offer;
  transfer.remote = source.pieces;
  transfer.remote_pieces = source.piece_count;
  transfer.owner = &owner;
  transfer.subject = subject;
  if (goal == 0) return end(transfer, 0);
  if (source.link->error != 0) return end(transfer, source.link->error);
  const bool reaches = mailbox_.reaches_private_memory(source.link->peer);
  const bool streams = source.may_stream && prefers_stream(*source.link, goal);
  if (reaches && !streams) return pulls_.push_back(transfer);
  want(transfer);
  if (reaches) streams_.push_back(transfer);
}

// Oversubscribed processes do not stream: the one that runs copies by itself, without waiting for the other.
bool Transfers::prefers_stream(Link& from, std::uint64_t bytes) {
  if (links_.is_oversubscribed()) return false;
  lanes_.consider(from, bytes);
  if (mailbox_.section(from.peer).incoming < kLeastSection) return false;
  if (from.to_be_read == 0) return true;
  --from.to_be_read;
  return false;
}

void Transfers::want(Transfer& transfer) {
  transfer.streams = true;
  Wire wire;
  wire.head.operation = Operation::want;
  wire.head.request = transfer.offer;
  wire.head.data = Pool<Transfer>::number_of(transfer);
  wire.head.bytes = transfer.goal;
  (void)outbox_.send(*transfer.from, wire);
}

void Transfers::on_stream(Inflow& inflow) {
  Transfer* transfer = transfers_.find(inflow.packet.request);
  if (transfer == nullptr) return;  // this side has read the payload itself
  const bool fits = transfer->from == inflow.link && transfer->streams && inflow.packet.data == transfer->arrived &&
                    inflow.packet.bytes != 0 && inflow.packet.bytes <= transfer->goal - transfer->arrived;
  if (!fits) {
    inflow.error = FI_EIO;
    return;
  }
  inflow.direct(*this, inflow.packet.request, transfer->into);
  inflow.arrived = transfer->arrived;
}

void Transfers::progressed(Inflow& inflow) {
  Transfer* transfer = transfers_.find(inflow.subject);
  if (transfer == nullptr) return inflow.drop_rest();
  Link& link = *transfer->from;
  link.last_streamed = arch::ticks();
  transfer->arrived = inflow.arrived;
  if (transfer->arrived + transfer->pulled < transfer->goal) return;
  if (transfer->pulled == 0) link.penalty = 0;
  end(*transfer, 0);
}

// Drops what may still arrive for the transfer.
void Transfers::end(Transfer& transfer, int error) {
  const std::uint64_t number = Pool<Transfer>::number_of(transfer);
  if (transfer.streams) links_.for_each_inflow(*this, number, [](Inflow& inflow) { inflow.drop_rest(); });
  if (transfer.is_linked()) transfer.unlink();
  TransferOwner& owner = *transfer.owner;
  const std::uint64_t subject = transfer.subject;
  outbox_.control(*transfer.from, Operation::done, transfer.offer, static_cast<std::uint64_t>(error));
  transfers_.give(transfer);
  owner.transferred(subject, error);
}

void Transfers::cancel(const TransferOwner& owner, std::uint64_t subject, int error) {
  transfers_.for_each_taken([&](Transfer& transfer) {
    if (transfer.owner == &owner && transfer.subject == subject) end(transfer, error);
  });
}

bool Transfers::pull() noexcept {
  if (pulls_.empty()) return false;
  std::uint64_t budget = kPullAtOnce;
  while (Transfer* transfer = pulls_.front()) {
    const std::uint64_t before = transfer->arrived;
    if (!pull(*transfer)) return true;
    budget -= std::min(budget, transfer->arrived - before);
    if (budget == 0) return true;
  }
  return true;
}

// Returns true if the transfer is over.
bool Transfers::pull(Transfer& transfer) {
  const std::uint64_t part = std::min(transfer.left(), kPullAtOnce);
  int error = transfer.from->error;
  if (error == 0 && !read(transfer, transfer.arrived, part)) error = FI_EIO;
  transfer.arrived += part;
  if (error == 0 && transfer.left() > 0) return false;
  end(transfer, error);
  return true;
}

// Returns false if not all bytes could be read.
bool Transfers::read(Transfer& transfer, std::uint64_t offset, std::uint64_t bytes) noexcept {
  while (bytes > 0) {
    const RemotePiece source = remote_at(transfer, offset);
    const std::span<std::byte> to = transfer.into.at(offset, std::min(bytes, source.bytes));
    const std::size_t moved = mailbox_.read_private(transfer.from->peer, to, source.address);
    if (moved == 0) return false;
    offset += moved;
    bytes -= moved;
  }
  return true;
}

bool Transfers::pull_stalled() noexcept {
  if (streams_.empty()) return false;
  const std::uint64_t now = arch::ticks();
  Transfer* const stalled =
      streams_.find([&](const Transfer& transfer) { return now - transfer.from->last_streamed >= kStall; });
  return stalled != nullptr && pull_from_back(*stalled);
}

bool Transfers::pull_from_back(Transfer& transfer) {
  const std::uint64_t left = transfer.left();
  const std::uint64_t part = std::min(left, kPullWhenStalled);
  if (!read(transfer, transfer.goal - transfer.pulled - part, part)) {
    transfer.unlink();  // the rest is streamed, or the link is lost
    return true;
  }
  if (transfer.pulled == 0) {
    Link& link = *transfer.from;
    link.penalty = std::min(2 * link.penalty + 1, kMostPenalty);
    link.to_be_read = link.penalty;
  }
  transfer.pulled += part;
  if (part == left) end(transfer, 0);
  return true;
}

void Transfers::lose(Link& link, int error) {
  transfers_.for_each_taken([&](Transfer& transfer) {
    if (transfer.from == &link) end(transfer, error);
  });
}

}  // namespace wherry::mpi
