// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/put_end.hpp"

#include <cerrno>
#include <utility>

#include "fabric/check.hpp"
#include "memory/arena.hpp"
#include "memory/arena_region.hpp"

namespace wherry::fabric::inproc {

PutEnd::PutEnd(std::shared_ptr<PutPair> pair, std::size_t side, Peer peer)
    : End(pair, side, std::move(peer)), queue_(*pair->queues[side]), far_queue_(*pair->queues[1 - side]) {}

// Ends both queues: one reads this side's sources, the other writes to this side's segment, and the caller may unmap
// both next. The order guarantees two things: a peer that sees this side gone gets nothing more from it; and when a put
// of the peer fails, the peer sees that this side is gone.
PutEnd::~PutEnd() {
  queue_.kill();
  leave();
  far_queue_.kill();
}

std::size_t PutEnd::put(std::uint64_t offset, std::span<const std::byte> source) {
  if (source.empty() || !in_range(offset, source.size(), remote_bytes()) || peer_gone()) return 0;
  return queue_.copy(far_memory() + offset, source);
}

Result PutEnd::flush(Deadline deadline) {
  const Result flushed = queue_.flush(deadline);
  return flushed.ok() && peer_gone() ? Result::failure(ECONNRESET) : flushed;
}

bool PutEnd::get(std::span<std::byte> destination, std::uint64_t offset) {
  if (!in_range(offset, destination.size(), remote_bytes())) return false;
  while (!destination.empty()) {
    const std::size_t taken = queue_.copy(destination.data(), {far_memory() + offset, destination.size()});
    if (taken == 0) return false;
    destination = destination.subspan(taken);
    offset += taken;
  }
  return !peer_gone();
}

namespace {

/// Memory of the arena that is accessed by the wire.
class WiredRegion final : public memory::RemoteRegion {
 public:
  WiredRegion(std::shared_ptr<PutQueue> queue, memory::ArenaView::Range range)
      : queue_(std::move(queue)), range_(std::move(range)) {}
  ~WiredRegion() override { (void)queue_->flush({}); }  // queued steps need the mapping

  bool put(std::uint64_t offset, std::span<const std::byte> source) override {
    return copy(range_.start + offset, source);
  }
  bool get(std::span<std::byte> destination, std::uint64_t offset) override {
    return copy(destination.data(), {range_.start + offset, destination.size()});
  }
  bool signal(std::uint64_t offset, std::uint64_t value) override {
    return queue_->signal(range_.start + offset, value, std::nullopt);
  }

 private:
  bool copy(std::byte* to, std::span<const std::byte> from) {
    while (!from.empty()) {
      const std::size_t taken = queue_->copy(to, from);
      if (taken == 0) return false;
      from = from.subspan(taken);
      to += taken;
    }
    return true;
  }

  const std::shared_ptr<PutQueue> queue_;
  const memory::ArenaView::Range range_;
};

}  // namespace

std::shared_ptr<memory::RemoteRegion> PutEnd::reach_arena(std::uint64_t place, std::size_t bytes) {
  auto range = memory::Arena::instance().view()->map(place, bytes);
  if (range.start == nullptr) return std::make_shared<memory::OwnRegion>(0);
  return std::make_shared<WiredRegion>(queue_.shared_from_this(), std::move(range));
}

bool PutEnd::signal(std::uint64_t offset, std::uint64_t value, Bell bell) {
  return is_word(offset, remote_bytes()) && !peer_gone() && queue_.signal(far_memory() + offset, value, bell);
}

}  // namespace wherry::fabric::inproc
