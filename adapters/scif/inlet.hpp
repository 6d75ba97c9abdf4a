// SPDX-License-Identifier: Apache-2.0
// The receiving half of a connected endpoint; outlet.hpp says what the packets on the socket are for.
//
// Whenever the program is outside of the library one of two things holds, so that poll(2) is right: all bytes are read
// and the sender has a request that it has not answered; or a packet is on the socket, or about to be. So packets are
// taken away only after a new request was made and nothing was there after that.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "adapters/scif/line.hpp"
#include "adapters/scif/outlet.hpp"
#include "layout/scif_page.hpp"
#include "ring/ring.hpp"
#include "stream/waiter.hpp"

namespace wherry::scif {

class Inlet {
 public:
  /// @param own    this side's page, and the queue behind it
  /// @param peer   the peer's
  Inlet(Line& line, layout::ScifPage& own, layout::ScifPage& peer, std::byte* queue);

  Moved receive(std::span<std::byte> buffer, bool block);
  bool has_data();
  /// Whether bytes may have come since has_data() was false: costs a look at one word.
  [[nodiscard]] bool stirs() const {
    return heard_.tail.load(std::memory_order_relaxed) != seen_.load(std::memory_order_relaxed);
  }
  /// Makes the socket unreadable if nothing is there. To be called before somebody polls it.
  void settle();

 private:
  std::size_t pull(std::span<std::byte> buffer);
  void take_packets(std::uint64_t up_to, bool wait);
  void settle_locked();
  void expect(std::size_t bytes);
  int wait_for_data(std::size_t want);

  Line& line_;
  const layout::ScifArriving& heard_;
  layout::ScifLeaving& told_;
  std::mutex turn_;   ///< a blocking caller has it from its first byte to its last
  std::mutex mutex_;  ///< guards what follows, for as long as a copy takes
  ring::Consumer consumer_;
  std::atomic<std::uint64_t> seen_{0};  ///< the tail when the queue was last found empty
  std::uint64_t request_ = 0;
  std::uint64_t taken_ = 0;
  stream::SpinBudget budget_;  ///< belongs to who has the turn
};

}  // namespace wherry::scif
