// SPDX-License-Identifier: Apache-2.0
// Bells: how a side sleeps until the peer has something for it, part of the contract that fabric.hpp sums up.
//
// Each side has two bells, `data` (its receiver waits) and `space` (its sender waits). To sleep on one without losing a
// wake-up: `arm(bell)`; look again at the words the peer writes; if nothing came, `wait(bell)` or poll
// `descriptor(bell)`; then `disarm(bell)` or arm again. The peer's next `announce` or arriving `signal` after the arm
// rings it, once per arm.
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
  rung,     ///< the bell was rung (and is silent again)
  gone,     ///< the peer closed or died; everything it had published before is visible
  timeout,  ///< the deadline passed
};

/// Both bells of a connection, as one of its sides uses them.
class Bells {
 public:
  Bells() = default;
  Bells(const Bells&) = delete;
  Bells& operator=(const Bells&) = delete;
  virtual ~Bells() = default;

  /// Load/store form only: call after the store that publishes something for the peer's `bell`.
  /// Returns true if the peer slept and was rung (one system call), false if it is awake (none).
  bool announce(Bell bell) {
    return announce(bell, [] { return true; });
  }
  /// The same, but whether a peer that sleeps is rung is up to `worth_waking()`, which is asked when it is known to
  /// sleep. An answer of false obliges this side to announce again.
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

  /// Says that this side is about to sleep on `bell`. Full fence: what is looked at afterwards is newer than the
  /// announcement. Silences the bell first, so a wake-up from before cannot be taken for a new one.
  virtual void arm(Bell bell) = 0;
  /// Says that this side is awake. The bell may still be rung once by a peer that had not seen it.
  virtual void disarm(Bell bell) = 0;
  /// Makes the bell silent. True if it was ringing: the ring of the last arm may be used up, arm again before sleeping.
  virtual bool silence(Bell bell) = 0;
  /// Sleeps until `bell` is rung, the peer is gone, or the deadline passed. Only on an armed bell.
  virtual Wake wait(Bell bell, Deadline deadline) = 0;
  /// Readable while `bell` is rung or the peer is gone. Throws Error(EMFILE ...) if it is made here, at the first call.
  /// Owned by the connection.
  virtual int descriptor(Bell bell) = 0;
  /// What the peer itself rings `bell` on: a wake-up by it costs the least. Readable while the peer's ring waits or the
  /// peer is gone, and always writable; `notify_self` does not show on it. From the first call on the peer's rings do
  /// not show on `descriptor` any more. Owned by the connection. Where a fabric has no such thing: `descriptor`.
  virtual int event_descriptor(Bell bell) { return descriptor(bell); }
  /// Rings a bell of this side's own: `wait` returns and the descriptor is readable. From any thread.
  virtual void notify_self(Bell bell) = 0;

  /// When and on which CPU the peer last rang `bell`, as it says: to learn from, not to rely on. None: it has not rung
  /// yet, or the fabric does not tell.
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
  /// Rings a bell of the peer's. Never blocks. False: the kernel has no memory for it, try again later.
  virtual bool notify(Bell bell) = 0;

  /// What is behind a bell on a load/store fabric. All but the pointers belongs to the announcing thread.
  struct alignas(64) NotificationState {
    const layout::Word* waiter = nullptr;                 ///< whether the peer sleeps: in this side's own bell page
    const layout::Publisher* peers_publishing = nullptr;  ///< how the peer publishes, by its own account: there too
    layout::Publisher* own_publishing = nullptr;          ///< how this side does: in the peer's
    std::uint64_t seen_epoch = 0;                         ///< the waiter's when it last changed: a sleep is rung once
    std::uint64_t announcements_since = 0;
    std::uint64_t fence_threshold = UINT64_MAX;  ///< after so many announcements the fence is dropped
    bool fenced = true;
  };
  std::array<NotificationState, 2> notification_states_;

  /// For a load/store fabric, before anything is announced.
  /// @param unfenced  both sides take part in interrupts, and arm() ends with fence_of_arm()
  void start_notifications(const layout::BellPage& own, layout::BellPage& peers, bool unfenced);
  /// What arm() does after the announcement, given the peer's word about how it publishes for this bell.
  static void fence_of_arm(const layout::Word& publisher);

  /// For a decorator: the state by which it announces in place of the connection it wraps, and a notification through
  /// that connection.
  static NotificationState notification_state_of(const Bells& wrapped, Bell bell) {
    return wrapped.notification_states_[index(bell)];
  }
  static bool notify_through(Bells& wrapped, Bell bell) { return wrapped.notify(bell); }

 private:
  bool answer(Bell bell, std::uint64_t epoch);
  static void drop_fence(NotificationState& state);
};

}  // namespace wherry::fabric
