// SPDX-License-Identifier: Apache-2.0
// Bells: how a side sleeps until the peer has something for it. Part of the contract that fabric.hpp summarizes.
//
// Each side has two bells: its receiver waits for `data`, its sender for `space`. To sleep without losing a wake-up:
//   1. `arm(bell)`.
//   2. Look again at the words that the peer writes.
//   3. If nothing came, `wait(bell)` or poll `descriptor(bell)`.
//   4. `disarm(bell)`, or arm again.
// The peer's first `announce`, or first arriving `signal`, after the arm rings the bell: once per arm.
//
// May include: base, arch, layout.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "arch/barrier.hpp"
#include "layout/bell_page.hpp"

namespace wherry::fabric {

enum class Bell : std::uint8_t { data = 0, space = 1 };
inline constexpr std::array<Bell, 2> kBells{Bell::data, Bell::space};
constexpr std::size_t index(Bell bell) { return static_cast<std::size_t>(bell); }

using Deadline = std::optional<std::chrono::steady_clock::time_point>;  ///< empty: none

enum class Wake : std::uint8_t {
  rung,     ///< the bell was rung, and is silent again
  gone,     ///< the peer closed or died; everything that it had published before is visible
  timeout,  ///< the deadline passed
};

/// Both bells of a connection, as one of its sides uses them.
class Bells {
 public:
  Bells() = default;
  Bells(const Bells&) = delete;
  Bells& operator=(const Bells&) = delete;
  virtual ~Bells() = default;

  /// Rings the peer's `bell` if the peer sleeps. Only for load/store fabrics: call it after the store that publishes.
  /// Returns true if the peer slept and was rung (one system call), false if it is awake (no system call).
  bool announce(Bell bell) {
    return announce(bell, [] { return true; });
  }
  /// The same, but a sleeping peer is rung only if `worth_waking()` returns true. It is called only if the peer sleeps.
  /// If it returns false, this side must announce again later.
  template <class Worth>
  bool announce(Bell bell, Worth&& worth_waking) {
    auto& state = notification_states_[index(bell)];
    if (state.fenced) {
      arch::publish_then_look();  // SLEEP: pairs with the fence in arm()
    } else {
      arch::publish_then_look_unfenced();  // SLEEP: pairs with the interrupt in arm()
    }
    const std::uint64_t epoch = state.waiter->load(std::memory_order_acquire);  // SLEEP
    if (epoch != state.seen_epoch) return ((epoch & 1) == 0 || worth_waking()) && answer(bell, epoch);
    if (++state.announcements_since == state.fence_threshold) drop_fence(state);
    return false;
  }

  /// Announces that this side is about to sleep on `bell`. Full fence: if a later look misses a publication, the peer
  /// sees the announcement. First silences the bell, so that an old wake-up is not taken for a new one.
  virtual void arm(Bell bell) = 0;
  /// Announces that this side is awake. A peer that has not seen that yet may still ring the bell once.
  virtual void disarm(Bell bell) = 0;
  /// Silences the bell. True if it was ringing. The ring of the last arm may then be used up: arm again before
  /// sleeping.
  virtual bool silence(Bell bell) = 0;
  /// Sleeps until `bell` is rung, the peer is gone, or the deadline has passed. The bell must be armed.
  virtual Wake wait(Bell bell, Deadline deadline) = 0;
  /// Returns a descriptor that is readable while `bell` is rung or the peer is gone. The connection owns it. The first
  /// call may create it, and then throws Error(EMFILE ...).
  virtual int descriptor(Bell bell) = 0;
  /// Returns the descriptor on which the peer itself rings `bell`: the cheapest wake-up. It is readable while the
  /// peer's ring waits or the peer is gone, and always writable. It does not show `notify_self`. After the first call
  /// `descriptor` no longer shows the peer's rings. The connection owns it. Fabrics without one return `descriptor`.
  virtual int event_descriptor(Bell bell) { return descriptor(bell); }
  /// Rings this side's own bell: `wait` returns, and the descriptor is readable. Thread-safe.
  virtual void notify_self(Bell bell) = 0;

  /// When and on which CPU the peer last rang `bell`, as the peer claims: use it only as a hint. Empty if it has not
  /// rung yet, or if the fabric does not record it.
  struct Notification {
    std::uint64_t ns;  ///< of CLOCK_MONOTONIC
    std::uint64_t cpu;
  };
  [[nodiscard]] std::optional<Notification> last_notification(Bell bell) const {
    const layout::Publisher* peers = notification_states_[index(bell)].peers_publishing;
    const std::uint64_t ns = peers == nullptr ? 0 : peers->rung_ns.load(std::memory_order_relaxed);
    if (ns == 0) return std::nullopt;
    return Notification{ns, peers->rung_on.load(std::memory_order_relaxed)};
  }

 protected:
  /// Rings the peer's bell. Never blocks. False if the kernel has no memory for it: try again later.
  virtual bool notify(Bell bell) = 0;

  /// The state of announcements for one bell of a load/store fabric. Only the announcing thread uses it, except for the
  /// pointers.
  struct alignas(64) NotificationState {
    const layout::Word* waiter = nullptr;                 ///< odd while the peer sleeps; in this side's bell page
    const layout::Publisher* peers_publishing = nullptr;  ///< how the peer publishes, as it claims; in the same page
    layout::Publisher* own_publishing = nullptr;          ///< how this side publishes; in the peer's bell page
    std::uint64_t seen_epoch = 0;                         ///< the last epoch of the waiter: each sleep is rung once
    std::uint64_t announcements_since = 0;                ///< announcements since that epoch changed
    std::uint64_t fence_threshold = UINT64_MAX;           ///< after this many announcements the fence is dropped
    bool fenced = true;
  };
  std::array<NotificationState, 2> notification_states_;

  /// Initializes the states of a load/store fabric, before anything is announced.
  /// @param unfenced  both sides take part in interrupts, and arm() ends with fence_of_arm()
  void start_notifications(const layout::BellPage& own, layout::BellPage& peers, bool unfenced);
  /// Ends arm(): orders the announcement before the looks that follow it.
  /// @param publisher  the peer's word that tells whether it publishes for this bell without a fence
  static void fence_of_arm(const layout::Word& publisher);

  /// For a decorator, which announces in place of the connection that it wraps: returns that connection's state, and
  /// notifies through it.
  static NotificationState notification_state_of(const Bells& wrapped, Bell bell) {
    return wrapped.notification_states_[index(bell)];
  }
  static bool notify_through(Bells& wrapped, Bell bell) { return wrapped.notify(bell); }

 private:
  bool answer(Bell bell, std::uint64_t epoch);
  static void drop_fence(NotificationState& state);
};

}  // namespace wherry::fabric
