// SPDX-License-Identifier: Apache-2.0
// The sending half of a connected endpoint: a queue of 4095 bytes in the peer's memory.
//
// poll(2) on the descriptor must be right. So packets on the socket mirror the queue's state (receive_queue.hpp has the
// other half):
//  - The receiver requests one packet by a new number in `request`. The sender answers it at the next bytes beyond
//    those that the receiver is polling for anyway (`quiet`). The receiver's socket is then readable.
//  - If the queue is full and the sender goes to sleep or returns to its program, it sends a large packet: its own
//    socket is not writable until the receiver takes that, which it does once it has made space. A small packet behind
//    it keeps the receiver's socket readable.
// While both sides are in the library there are no packets and no system calls.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "adapters/scif/endpoint_entry.hpp"
#include "adapters/scif/endpoint_waiter.hpp"
#include "adapters/scif/layout/page.hpp"
#include "adapters/scif/seen_pages.hpp"
#include "ring/ring.hpp"
#include "stream/waiter.hpp"

namespace wherry::scif {

/// Result of a call: the bytes moved, and an errno value if it ended early.
struct Moved {
  std::size_t bytes = 0;
  int error = 0;
};

/// A packet of this size makes a socket unwritable (see tune_socket in socket.hpp).
inline constexpr std::size_t kFatPacket = 4352;

class SendQueue {
 public:
  /// @param lock  the entry's lock for sending
  /// @param own   this side's page
  /// @param peer  the peer's page, and the queue behind it
  SendQueue(EndpointWaiter& waiter, SpinLock& lock, layout::ScifPage& own, layout::ScifPage& peer, std::byte* queue);

  /// Blocking callers take turns, so that the bytes of one call stay together.
  /// @param fd  here and below: a descriptor of the socket
  Moved send(int fd, std::span<const std::byte> bytes, bool block);
  /// Does the same without waiting. If it returns false, send() must follow. The caller holds the lock.
  bool send_at_once(int fd, std::span<const std::byte> bytes, bool block, Moved& moved);
  /// To be called in a forked child: see Turn.
  void forget_parents() { turn_.forget_parents(); }
  /// Whether a byte fits.
  bool has_space();
  /// Makes the socket unwritable if there is no space. To be called before the socket is polled.
  void prepare_poll(int fd);

 private:
  std::size_t push(int fd, std::span<const std::byte> bytes);
  std::size_t space() { return spare(producer_.space()); }
  [[nodiscard]] std::size_t known_space() const { return spare(producer_.capacity() - producer_.fill()); }
  static std::size_t spare(std::size_t free) { return free == 0 ? 0 : free - 1; }
  void announce(int fd, std::uint64_t start);
  [[nodiscard]] bool needs_packet(std::uint64_t start) const;
  void mark_full(int fd);
  bool send_packet(int fd, std::size_t bytes);
  void finish(int fd, Moved& moved, std::size_t count);
  int wait_for_space(int fd, std::unique_lock<SpinLock>& lock);

  EndpointWaiter& waiter_;
  const layout::ScifLeaving& leaving_;
  const layout::ScifWanting& wanting_;
  layout::ScifArriving& peers_arriving_;
  SpinLock& lock_;  ///< guards the members below
  Turn turn_;
  SeenPages pages_{memory::Access::read};
  ring::Producer producer_;
  std::uint64_t packets_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t full_ = 0;
  stream::SpinBudget budget_;  ///< guarded by the turn
};

}  // namespace wherry::scif
