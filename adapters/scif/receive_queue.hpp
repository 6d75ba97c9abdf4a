// SPDX-License-Identifier: Apache-2.0
// The receiving half of a connected endpoint. send_queue.hpp says what the packets on the socket are for.
//
// Whenever the program is outside the library one of two conditions holds, so that poll(2) is right. Either all bytes
// are read, and the sender has a request that it has not answered; or a packet is on the socket, or about to be. So
// packets are taken off only after a new request was made and the queue was still empty.
//
// One exception makes scif_poll as fast as scif_recv. A program has the habit if each scif_poll that reported bytes was
// followed by a scif_recv that took all of them, kHabit times in a row. While such a program polls in scif_poll, the
// next write needs no packet (`polled`). Between that scif_poll's return and the next call the socket then shows
// nothing. A call that breaks the habit puts a packet there itself (own_packet.hpp) before it returns. If that is not
// possible, there is no exception.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "adapters/scif/endpoint_entry.hpp"
#include "adapters/scif/endpoint_waiter.hpp"
#include "adapters/scif/layout/page.hpp"
#include "adapters/scif/own_packet.hpp"
#include "adapters/scif/seen_pages.hpp"
#include "adapters/scif/send_queue.hpp"
#include "arch/prefetch.hpp"
#include "ring/ring.hpp"
#include "stream/waiter.hpp"

namespace wherry::scif {

class ReceiveQueue {
 public:
  static constexpr int kHabit = 16;

  /// @param lock   the entry's lock for receiving
  /// @param own    this side's page, and the queue behind it
  /// @param peer   the peer's page
  ReceiveQueue(EndpointWaiter& waiter, SpinLock& lock, fabric::Connection& connection, layout::ScifPage& own,
               layout::ScifPage& peer, std::byte* queue);

  /// @param fd  here and below: a descriptor of the socket
  Moved receive(int fd, std::span<std::byte> buffer, bool block);
  /// Does the same without waiting if enough bytes are there. If it returns false, receive() must follow. The caller
  /// holds the lock.
  bool receive_at_once(int fd, std::span<std::byte> buffer, bool block, Moved& moved);

  /// Whether bytes may have arrived since the queue was last found empty. Reads one word.
  [[nodiscard]] bool may_have_data() const {
    const std::uint64_t seen = seen_.load(std::memory_order_relaxed);
    // The cache lines of the bytes and of the tail are then fetched at the same time: see Consumer::refresh.
    arch::prefetch(queue_ + seen % layout::kScifQueueBytes);
    return arriving_.tail.load(std::memory_order_relaxed) != seen;
  }

  // For scif_poll.
  /// Returns whether bytes are there. If so, the caller reports that to the program.
  bool report();
  /// To be called before polling: the next write needs no packet, if the program has the habit. If it returns true,
  /// restore_packets() must follow unless bytes come.
  bool suppress_packets();
  /// To be called if polling found nothing. Bytes that come now are seen by a later report(), or have a packet.
  void restore_packets();
  /// Makes the socket unreadable if the queue is empty. To be called before a thread sleeps on it; wake_up() must
  /// follow.
  void fall_asleep(int fd);
  void wake_up();

  /// To be called in a forked child: see Turn.
  void forget_parents();

 private:
  std::span<std::byte> writable_part(std::span<std::byte> buffer);
  std::size_t pull(int fd, std::span<std::byte> buffer);
  void note(std::size_t received);
  void show_bytes();
  void take_full_packet(int fd);
  void take_packets(int fd, std::uint64_t up_to);
  bool take_packet(int fd);
  void rearm(int fd);
  void expect(std::size_t bytes);
  void expect_packets();
  int wait_for_data(int fd, std::unique_lock<SpinLock>& lock, std::size_t want);

  EndpointWaiter& waiter_;
  const std::byte* queue_;
  const layout::ScifArriving& arriving_;
  layout::ScifLeaving& peers_leaving_;
  layout::ScifWanting& peers_wanting_;
  const PeersSocket peers_socket_;
  SpinLock& lock_;  ///< guards the members below
  Turn turn_;
  SeenPages pages_{memory::Access::write};
  ring::Consumer consumer_;
  std::atomic<std::uint64_t> seen_{0};  ///< the tail when the queue was last found empty
  std::uint64_t request_ = 0;
  std::uint64_t taken_ = 0;        ///< packets of the peer that were taken off the socket
  std::uint64_t own_packets_ = 0;  ///< own packets on the socket
  std::uint64_t polled_ = 0;
  const std::uint64_t generation_;  ///< of the process that made the connection: a forked child borrows nothing
  std::atomic<int> habit_{0};       ///< also read without the lock
  int fruitless_polls_ = 0;
  bool habit_counts_ = true;      ///< own packets are possible, as far as is known
  bool reported_ = false;         ///< a scif_poll has reported bytes, and nothing was received since
  bool may_lack_packet_ = false;  ///< bytes may be there without a packet
  int asleep_ = 0;                ///< threads that only a packet wakes
  stream::SpinBudget budget_;     ///< guarded by the turn
};

}  // namespace wherry::scif
