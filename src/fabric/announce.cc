// SPDX-License-Identifier: Apache-2.0
// The two ways to publish (SLEEP).
//
// With a full fence between the store that publishes and the look for a sleeper, the sleeper needs only a fence of its
// own. Without it, the sleeper must interrupt the publisher, which is expensive. The publisher chooses by how often its
// peer sleeps, and stores its choice in a word of the peer's bell page. It may change its choice at any moment:
//
//  - Fence dropped: the publisher stores the word before a full fence. If a sleeper does not see the word, it has
//    announced itself before that fence, and every later look sees the sleeper.
//  - Fence restored: the publisher stores the word, with release, after everything that it published without a fence. A
//    sleeper that sees the word sees that data too.
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "fabric/bell.hpp"

namespace wherry::fabric {
namespace {

/// Per CPU: announcements to an awake peer after which the fence is dropped. An interrupt costs every CPU about as much
/// as this many fences cost one CPU. So interrupts never cost more than the fences did, whatever the peer does.
constexpr std::uint64_t kAnnouncementsPerCpu = 128;

std::uint64_t fence_threshold() {
  static const auto cpus = static_cast<std::uint64_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  return kAnnouncementsPerCpu * cpus;
}

}  // namespace

void Bells::start_notifications(const layout::BellPage& own, layout::BellPage& peers, bool unfenced) {
  for (const Bell bell : kBells) {
    NotificationState& state = notification_states_[index(bell)];
    state.waiter = &own.waiters[index(bell)].epoch;
    state.peers_publishing = &own.publishers[index(bell)];
    state.own_publishing = &peers.publishers[index(bell)];
    if (unfenced) state.fence_threshold = fence_threshold();
  }
}

void Bells::drop_fence(NotificationState& state) {
  // UNFENCED release: before the first announcement without a fence; pairs with the look in fence_of_arm.
  state.own_publishing->unfenced.store(1, std::memory_order_release);
  arch::publish_then_look();  // UNFENCED: pairs with the fence in fence_of_arm
  state.fenced = false;
}

bool Bells::answer(Bell bell, std::uint64_t epoch) {
  NotificationState& state = notification_states_[index(bell)];
  state.seen_epoch = epoch;
  state.announcements_since = 0;
  if (!state.fenced) {
    state.own_publishing->unfenced.store(0, std::memory_order_release);  // UNFENCED
    state.fenced = true;
  }
  if ((epoch & 1) == 0) return false;
  state.own_publishing->rung_on.store(static_cast<std::uint64_t>(::sched_getcpu()), std::memory_order_relaxed);
  state.own_publishing->rung_ns.store(monotonic_ns(), std::memory_order_relaxed);
  // If that failed, the next announcement treats the sleeper as new and rings it.
  if (!notify(bell)) state.seen_epoch = epoch - 1;
  return true;
}

void Bells::fence_of_arm(const layout::Word& publisher) {
  arch::publish_then_look();  // SLEEP, UNFENCED: pairs with announce() and drop_fence()
  // UNFENCED, SLEEP: the interrupt pairs with an announcement without a fence.
  if (publisher.load(std::memory_order_acquire) != 0) arch::interrupt_publishers();
}

}  // namespace wherry::fabric
