// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/receive_queue.hpp"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "arch/barrier.hpp"
#include "base/fork_generation.hpp"

namespace wherry::scif {
namespace {

/// Time to wait for a sender that is about to send a packet. After that, the next call takes the packet.
constexpr std::chrono::milliseconds kPacketTimeout{2};
/// More packets than a correct sender ever has under way.
constexpr std::uint64_t kMostPackets = 64;
/// After more polls than this that found nothing in an endpoint, its program loses the habit.
constexpr int kMostFruitlessPolls = 8;

}  // namespace

ReceiveQueue::ReceiveQueue(EndpointWaiter& waiter, SpinLock& lock, fabric::Connection& connection,
                           layout::ScifPage& own, layout::ScifPage& peer, std::byte* queue)
    : waiter_(waiter),
      queue_(queue),
      arriving_(own.arriving),
      peers_leaving_(peer.leaving),
      peers_wanting_(peer.wanting),
      peers_socket_(connection, own.socket),
      lock_(lock),
      consumer_(ring::View{queue, layout::kScifQueueBytes}, &own.arriving.tail, &peer.leaving.head),
      generation_(fork_generation()) {}

bool ReceiveQueue::receive_at_once(int fd, std::span<std::byte> buffer, bool block, Moved& moved) {
  if (block && turn_.taken()) return false;
  if (block && consumer_.fill() < buffer.size()) {
    // Announced as early as possible: the sender may be about to answer what this program sent a moment ago.
    expect(buffer.size());
    return false;
  }
  if (!pages_.are_there(buffer)) return false;
  moved = {pull(fd, buffer), 0};
  note(moved.bytes);
  return moved.bytes != 0;
}

Moved ReceiveQueue::receive(int fd, std::span<std::byte> buffer, bool block) {
  std::unique_lock lock(lock_);
  if (!block) buffer = writable_part(buffer);
  if (!pages_.are_there(buffer)) return {0, EFAULT};
  std::optional<Turn::Guard> turn;
  if (block) turn.emplace(turn_, lock);
  Moved moved;
  for (bool ended = false;;) {
    moved.bytes += pull(fd, buffer.subspan(moved.bytes));
    if (moved.bytes == buffer.size()) break;
    // Everything that the peer sent before its end was visible with the end, and the queue was read after that.
    if (ended) moved.error = ECONNRESET;
    if (ended || (moved.bytes != 0 && !block)) break;
    // A blocking call learns of the end when it sleeps.
    ended = waiter_.sleepers().woken() || (block ? waiter_.gone() : waiter_.look_for_end(fd));
    if (ended) continue;
    if (!block) break;
    moved.error = wait_for_data(fd, lock, buffer.size() - moved.bytes);
    if (moved.error != 0) break;
    ended = waiter_.gone() || waiter_.sleepers().woken();
  }
  note(moved.bytes);
  return moved;
}

/// A non-blocking call takes what is there, and needs only that much of its buffer. If not all of the buffer can be
/// written, it is cut after its first page.
std::span<std::byte> ReceiveQueue::writable_part(std::span<std::byte> buffer) {
  if (pages_.are_there(buffer)) return buffer;
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t in_page = page - reinterpret_cast<std::uintptr_t>(buffer.data()) % page;
  return buffer.first(std::min(buffer.size(), in_page));
}

std::size_t ReceiveQueue::pull(int fd, std::span<std::byte> buffer) {
  std::size_t count = 0;
  // Two passes: the first may stop at the bytes that are known already.
  for (int pass = 0; pass < 2 && count < buffer.size(); ++pass) count += consumer_.copy_out(buffer.subspan(count));
  if (count != 0) {
    consumer_.return_credit();
    arch::publish_then_look();  // SCIF-FULL: pairs with the fence in SendQueue::mark_full
    take_full_packet(fd);
  }
  if (consumer_.known_fill() == 0) rearm(fd);
  if (consumer_.broken()) waiter_.declare_gone();
  return count;
}

/// To be called before a call that received returns: updates the habit.
void ReceiveQueue::note(std::size_t received) {
  if (received == 0) return;
  const bool all = consumer_.known_fill() == 0;
  const int habit = all && reported_ ? std::min(habit_.load(std::memory_order_relaxed) + 1, kHabit + 1) : 0;
  if (habit == kHabit) habit_counts_ = peers_socket_.can_be_borrowed();
  habit_.store(habit, std::memory_order_relaxed);
  reported_ = false;
  fruitless_polls_ = 0;
  if (!all) show_bytes();
  may_lack_packet_ = false;
}

/// Puts a packet on the own socket if bytes are there without one.
void ReceiveQueue::show_bytes() {
  if (!may_lack_packet_) return;
  may_lack_packet_ = false;
  // SCIF-PACKETS acquire: pairs with the release in SendQueue::send_packet.
  if (consumer_.fill() == 0 || own_packets_ != 0 || arriving_.packets.load(std::memory_order_acquire) != taken_) return;
  habit_counts_ = peers_socket_.send_own_packet();
  if (habit_counts_) ++own_packets_;
}

bool ReceiveQueue::take_packet(int fd) {
  std::byte content{};
  if (::recv(fd, &content, sizeof content, MSG_DONTWAIT) <= 0) return false;
  if (content == kOwnPacket && own_packets_ != 0) {
    --own_packets_;
  } else {
    ++taken_;
  }
  return true;
}

/// To be called when there is space again: takes the packet that marks the queue as full, if the sender announced one.
void ReceiveQueue::take_full_packet(int fd) {
  // SCIF-FULL acquire: pairs with the release in SendQueue::mark_full.
  const std::uint64_t full = arriving_.full.load(std::memory_order_acquire);
  if (static_cast<std::int64_t>(full - taken_) <= 0) return;
  const auto give_up = std::chrono::steady_clock::now() + kPacketTimeout;
  // Takes nothing until the sender has sent that packet or called it off. If it is called off, only the packets on the
  // socket tell poll(2) of the bytes that are left, and the next packet may announce more.
  while (arriving_.full_sent.load(std::memory_order_acquire) != full) {              // SCIF-FULL-SENT
    const bool called_off = arriving_.full.load(std::memory_order_acquire) != full;  // SCIF-FULL
    if (called_off || waiter_.ask_for_end(fd) || std::chrono::steady_clock::now() > give_up) return;
    ::sched_yield();
  }
  take_packets(fd, full);
}

void ReceiveQueue::take_packets(int fd, std::uint64_t up_to) {
  if (static_cast<std::int64_t>(up_to - taken_) <= 0) return;
  if (up_to - taken_ > kMostPackets) return waiter_.declare_gone();
  while (taken_ < up_to && take_packet(fd)) continue;
  // SCIF-DRAINED release: the packets are off the socket; pairs with the acquire in SendQueue::mark_full.
  peers_leaving_.drained.store(taken_, std::memory_order_release);
}

void ReceiveQueue::rearm(int fd) {
  // outside: stored without order; the load of `packets` must not come before this one.
  const bool answered = arriving_.answered.load(std::memory_order_acquire) == request_ + 1;
  std::uint64_t packets = arriving_.packets.load(std::memory_order_acquire);  // SCIF-PACKETS
  seen_.store(consumer_.head(), std::memory_order_relaxed);
  if (!answered && packets == taken_ && own_packets_ == 0) return;
  if (answered) {
    // SCIF-REQUEST release: pairs with SendQueue::announce
    peers_wanting_.request.store(++request_, std::memory_order_release);
    arch::publish_then_look();  // SCIF-REQUEST: pairs with the fence in SendQueue::announce
    packets = arriving_.packets.load(std::memory_order_acquire);  // SCIF-PACKETS
  }
  if (consumer_.fill() == 0) {
    take_packets(fd, packets);
    while (own_packets_ != 0 && take_packet(fd)) continue;
  } else if (packets - taken_ > 1) {
    take_packets(fd, packets - 1);  // one is enough to make the socket readable
  }
}

/// Tells the sender that the next `bytes` bytes need no packet, because they are waited for.
void ReceiveQueue::expect(std::size_t bytes) {
  peers_wanting_.quiet.store(consumer_.head() + bytes, std::memory_order_relaxed);
  arch::publish_then_look();  // SCIF-REQUEST: pairs with the fence in SendQueue::announce
}

/// Tells the sender that every write needs a packet.
void ReceiveQueue::expect_packets() {
  polled_ = consumer_.head();
  peers_wanting_.polled.store(polled_, std::memory_order_relaxed);
  expect(0);
}

int ReceiveQueue::wait_for_data(int fd, std::unique_lock<SpinLock>& lock, std::size_t want) {
  if (budget_.budget().count() != 0) {
    expect(want);
    if (consumer_.fill() != 0) return 0;
    lock.unlock();
    const bool came = look(budget_, [&] { return may_have_data() || waiter_.sleepers().woken(); });
    lock.lock();
    if (came) return 0;
  }
  expect_packets();
  if (consumer_.fill() != 0) return 0;
  rearm(fd);
  if (consumer_.fill() != 0) return 0;
  ++asleep_;
  lock.unlock();
  const int error = waiter_.sleep(fd, POLLIN, {});
  lock.lock();
  --asleep_;
  return error == ECANCELED ? ECONNRESET : error;
}

void ReceiveQueue::forget_parents() {
  turn_.forget_parents();
  asleep_ = 0;
}

bool ReceiveQueue::report() {
  const std::lock_guard lock(lock_);
  const bool some = consumer_.fill() != 0;
  if (consumer_.broken()) waiter_.declare_gone();
  if (!some) {
    seen_.store(consumer_.head(), std::memory_order_relaxed);
    return false;
  }
  if (reported_) {
    habit_.store(0, std::memory_order_relaxed);
    show_bytes();
  }
  reported_ = true;
  return true;
}

bool ReceiveQueue::suppress_packets() {
  if (habit_.load(std::memory_order_relaxed) < kHabit) return false;
  const std::lock_guard lock(lock_);
  // Only packets wake a sleeping thread, and each write may be the one that it waits for.
  if (habit_.load(std::memory_order_relaxed) < kHabit || !habit_counts_ || asleep_ != 0 ||
      generation_ != fork_generation())
    return false;
  polled_ = consumer_.head() + 1;
  peers_wanting_.polled.store(polled_, std::memory_order_relaxed);
  may_lack_packet_ = true;
  arch::publish_then_look();  // SCIF-REQUEST: pairs with the fence in SendQueue::announce
  return true;
}

void ReceiveQueue::restore_packets() {
  const std::lock_guard lock(lock_);
  if (consumer_.head() >= polled_) return;
  expect_packets();
  // The packets of an idle endpoint among many are then not suppressed each time.
  if (++fruitless_polls_ > kMostFruitlessPolls) habit_.store(0, std::memory_order_relaxed);
}

void ReceiveQueue::fall_asleep(int fd) {
  const std::lock_guard lock(lock_);
  ++asleep_;
  if (consumer_.head() < polled_) expect_packets();
  if (consumer_.fill() == 0) rearm(fd);
}

void ReceiveQueue::wake_up() {
  const std::lock_guard lock(lock_);
  --asleep_;
}

}  // namespace wherry::scif
