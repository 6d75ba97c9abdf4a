// SPDX-License-Identifier: Apache-2.0
// The bells of one connection to another host, and whether the connection is gone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "fabric/connection.hpp"
#include "fabric/event_bell.hpp"

namespace wherry::fabric::ofi {

/// The functions of the waiters are as in Connection. Thread-safe, except for ring().
class LinkBells {
 public:
  /// Throws Error(EMFILE).
  LinkBells() = default;

  void arm(Bell bell);
  void disarm(Bell bell);
  bool silence(Bell bell);
  [[nodiscard]] int descriptor(Bell bell) const { return bells_[index(bell)].descriptor(); }
  void notify(Bell bell) { bells_[index(bell)].notify(); }
  void notify_all();

  /// Notifies a sleeping waiter, once per sleep. Called by the thread that has stored a word of the peer. One thread at
  /// a time.
  void ring(Bell bell);

  /// Marks the connection as gone, permanently. Call `notify_all` afterwards.
  void set_gone() { gone_.store(true, std::memory_order_release); }                     // GONE
  [[nodiscard]] bool is_gone() const { return gone_.load(std::memory_order_acquire); }  // GONE

 private:
  std::array<EventBell, 2> bells_;
  std::array<std::atomic<std::uint64_t>, 2> epochs_{};  // [bell]: odd while this side sleeps or is about to
  std::array<std::uint64_t, 2> rung_{};                 // [bell]: the epoch that was last rung
  std::atomic<bool> gone_{false};
};

}  // namespace wherry::fabric::ofi
