// SPDX-License-Identifier: Apache-2.0
// The sending half of a connected endpoint: a queue of 4095 bytes in the peer's memory.
//
// The descriptor must tell poll(2) the truth, so the queue's state is mirrored in the socket by packets
// (receive_queue.hpp has the other half):
//  - The receiver asks for one packet by a new number in `request`. The sender answers it with the next bytes that go
//    beyond what the receiver said it is waiting for anyway (`quiet`): the receiver's socket is readable.
//  - When the queue is full and the sender goes to sleep or returns to its program, it sends a packet so large that
//    its own socket is not writable until the receiver takes it, which it does when it has made space; and a small one
//    behind it, so that the receiver's socket stays readable.
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

/// What a call did: bytes moved, and why it ended early (an errno value).
struct Moved {
  std::size_t bytes = 0;
  int error = 0;
};

/// Larger than what a socket takes and is still writable (see make_socket in socket.hpp).
inline constexpr std::size_t kFatPacket = 4352;

class SendQueue {
 public:
  /// @param lock  the entry's for sending
  /// @param own   this side's page
  /// @param peer  the peer's, and the queue behind it
  SendQueue(EndpointWaiter& waiter, BriefLock& lock, layout::ScifPage& own, layout::ScifPage& peer, std::byte* queue);

  /// Blocking callers take turns, so that what one sends stays together.
  /// @param fd  here and below: a descriptor of the socket
  Moved send(int fd, std::span<const std::byte> bytes, bool block);
  /// Does the same if that takes no waiting. To be called with the lock held.
  bool send_at_once(int fd, std::span<const std::byte> bytes, bool block, Moved& moved);
  /// In a forked child, as Turn has it.
  void forget_parents() { turn_.forget_parents(); }
  /// Whether a byte fits.
  bool has_space();
  /// Makes the socket say that there is no space, if there is none. To be called before it is polled.
  void settle(int fd);

 private:
  std::size_t push(int fd, std::span<const std::byte> bytes);
  std::size_t space() { return spare(producer_.space()); }
  [[nodiscard]] std::size_t known_space() const { return spare(producer_.capacity() - producer_.fill()); }
  static std::size_t spare(std::size_t free) { return free == 0 ? 0 : free - 1; }
  void tell(int fd, std::uint64_t start);
  [[nodiscard]] bool needs_packet(std::uint64_t start) const;
  void say_full(int fd);
  bool send_packet(int fd, std::size_t bytes);
  void finish(int fd, Moved& moved, std::size_t count);
  int wait_for_space(int fd, std::unique_lock<BriefLock>& lock);

  EndpointWaiter& waiter_;
  const layout::ScifLeaving& heard_;
  const layout::ScifWanting& wanted_;
  layout::ScifArriving& told_;
  BriefLock& lock_;  ///< guards what follows
  Turn turn_;
  SeenPages pages_{memory::Access::read};
  ring::Producer producer_;
  std::uint64_t packets_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t full_ = 0;
  stream::SpinBudget budget_;  ///< guarded by the turn
};

}  // namespace wherry::scif
