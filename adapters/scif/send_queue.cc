// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/send_queue.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "arch/barrier.hpp"
#include "arch/pause.hpp"

namespace wherry::scif {
namespace {

constexpr int kSpinLooks = 48;  ///< polls: a microsecond

}  // namespace

SendQueue::SendQueue(EndpointWaiter& waiter, SpinLock& lock, layout::ScifPage& own, layout::ScifPage& peer,
                     std::byte* queue)
    : waiter_(waiter),
      leaving_(own.leaving),
      wanting_(own.wanting),
      peers_arriving_(peer.arriving),
      lock_(lock),
      producer_(ring::View{queue, layout::kScifQueueBytes}, &own.leaving.head, &peer.arriving.tail) {}

bool SendQueue::send_at_once(int fd, std::span<const std::byte> bytes, bool block, Moved& moved) {
  if (waiter_.sleepers().woken() || waiter_.gone()) {
    moved = {0, ECONNRESET};
    return true;
  }
  if (block) {
    if (turn_.taken()) return false;
    if (known_space() < bytes.size() && space() < bytes.size()) return false;
  }
  if (!pages_.are_there(bytes)) {
    moved = {0, EFAULT};
    return true;
  }
  moved = {push(fd, bytes), 0};
  finish(fd, moved, moved.bytes);
  return true;
}

Moved SendQueue::send(int fd, std::span<const std::byte> bytes, bool block) {
  std::unique_lock lock(lock_);
  Moved moved;
  if (!block) {
    send_at_once(fd, bytes, false, moved);
    return moved;
  }
  if (!pages_.are_there(bytes)) return {0, EFAULT};
  const Turn::Guard turn(turn_, lock);
  while (true) {
    moved.error = waiter_.sleepers().woken() || waiter_.look_for_end(fd) ? ECONNRESET : 0;
    if (moved.error != 0) return moved;
    const std::size_t count = push(fd, bytes.subspan(moved.bytes));
    moved.bytes += count;
    if (moved.bytes == bytes.size()) {
      finish(fd, moved, count);
      return moved;
    }
    moved.error = wait_for_space(fd, lock);
    if (moved.error != 0) return moved;
  }
}

/// To be called before a call returns. Looks for the peer's end after the last `count` bytes were written, so that they
/// travel meanwhile. If the peer is gone, only the bytes that it has read count as sent: it may have read all and then
/// closed.
void SendQueue::finish(int fd, Moved& moved, std::size_t count) {
  if (known_space() == 0) mark_full(fd);
  if (!waiter_.look_for_end(fd)) return;
  const std::uint64_t unread = producer_.tail() - leaving_.head.load(std::memory_order_acquire);  // RING-HEAD
  moved.bytes -= std::min<std::uint64_t>(unread, count);
  if (moved.bytes == 0) moved.error = ECONNRESET;
}

std::size_t SendQueue::push(int fd, std::span<const std::byte> bytes) {
  std::size_t free = known_space();
  if (free < bytes.size()) free = space();
  const std::size_t count = producer_.copy_in(bytes.first(std::min(free, bytes.size())));
  if (count != 0) {
    const std::uint64_t start = producer_.tail();
    producer_.commit(count);
    announce(fd, start);
  }
  if (producer_.broken()) waiter_.declare_gone();
  return count;
}

/// @param start  where the write began
void SendQueue::announce(int fd, std::uint64_t start) {
  arch::publish_then_look();  // SCIF-REQUEST: pairs with the fences in ReceiveQueue that follow a request
  // A packet costs each side a system call of a microsecond. A receiver that answers at once returns for the next bytes
  // in less time. Without this wait one packet makes the next necessary, because its sender returns late.
  for (int looks = 0; needs_packet(start); ++looks) {
    if (looks < kSpinLooks) {
      arch::pause();
      continue;
    }
    answered_ = wanting_.request.load(std::memory_order_acquire) + 1;  // SCIF-REQUEST
    send_packet(fd, 1);
    return;
  }
}

/// Whether the receiver needs a packet to learn of the bytes from `start` on.
bool SendQueue::needs_packet(std::uint64_t start) const {
  const auto is_before = [](std::uint64_t one, std::uint64_t other) {
    return static_cast<std::int64_t>(one - other) < 0;
  };
  if (wanting_.request.load(std::memory_order_acquire) + 1 == answered_) return false;  // SCIF-REQUEST
  if (!is_before(wanting_.quiet.load(std::memory_order_relaxed), producer_.tail())) return false;
  if (is_before(start, wanting_.polled.load(std::memory_order_relaxed))) return false;
  // RING-HEAD acquire: it may have read it already.
  return is_before(leaving_.head.load(std::memory_order_acquire), producer_.tail());
}

bool SendQueue::send_packet(int fd, std::size_t bytes) {
  static constexpr std::array<std::byte, kFatPacket> kNothing{};
  peers_arriving_.answered.store(answered_, std::memory_order_relaxed);
  peers_arriving_.packets.store(++packets_, std::memory_order_release);  // SCIF-PACKETS
  if (::send(fd, kNothing.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
  // No room in the socket: the peer takes no packets off it, and so needs no more. Or the peer is gone.
  peers_arriving_.packets.store(--packets_, std::memory_order_release);  // SCIF-PACKETS
  return false;
}

void SendQueue::mark_full(int fd) {
  if (space() != 0 || leaving_.drained.load(std::memory_order_acquire) < full_) return;  // SCIF-DRAINED
  const std::uint64_t before = full_;
  full_ = packets_ + 1;
  peers_arriving_.full.store(full_, std::memory_order_release);  // SCIF-FULL
  arch::publish_then_look();  // SCIF-FULL: pairs with the fence in ReceiveQueue::pull
  if (space() != 0 || !send_packet(fd, kFatPacket)) {
    full_ = before;
    peers_arriving_.full.store(full_, std::memory_order_release);  // SCIF-FULL
    return;
  }
  answered_ = wanting_.request.load(std::memory_order_acquire) + 1;  // SCIF-REQUEST
  send_packet(fd, 1);
  peers_arriving_.full_sent.store(full_, std::memory_order_release);  // SCIF-FULL-SENT
}

int SendQueue::wait_for_space(int fd, std::unique_lock<SpinLock>& lock) {
  const std::uint64_t head = producer_.tail() - producer_.fill();
  lock.unlock();
  const bool came = look(budget_, [&] { return leaving_.head.load(std::memory_order_acquire) != head; });  // RING-HEAD
  lock.lock();
  if (came) return 0;
  mark_full(fd);
  lock.unlock();
  const int error = waiter_.sleep(fd, POLLOUT, {});
  lock.lock();
  return error == ECANCELED ? ECONNRESET : error;
}

bool SendQueue::has_space() {
  const std::lock_guard lock(lock_);
  return known_space() != 0 || space() != 0;
}

void SendQueue::prepare_poll(int fd) {
  const std::lock_guard lock(lock_);
  mark_full(fd);
}

}  // namespace wherry::scif
