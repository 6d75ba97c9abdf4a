// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/link_bells.hpp"

#include "arch/barrier.hpp"

namespace wherry::fabric::ofi {

void LinkBells::notify_all() {
  for (const EventBell& bell : bells_) bell.notify();
}

void LinkBells::ring(Bell bell) {
  arch::publish_then_look();  // SLEEP: pairs with the fence in arm()
  const std::uint64_t epoch = epochs_[index(bell)].load(std::memory_order_acquire);  // SLEEP
  std::uint64_t& rung = rung_[index(bell)];
  if ((epoch & 1) == 0 || epoch == rung) return;
  rung = epoch;
  notify(bell);
}

void LinkBells::arm(Bell bell) {
  silence(bell);
  auto& epoch = epochs_[index(bell)];
  epoch.store((epoch.load(std::memory_order_relaxed) + 1) | 1, std::memory_order_release);  // SLEEP
  arch::publish_then_look();  // SLEEP: pairs with the fence in ring()
}

void LinkBells::disarm(Bell bell) {
  auto& epoch = epochs_[index(bell)];
  epoch.store((epoch.load(std::memory_order_relaxed) + 1) & ~std::uint64_t{1}, std::memory_order_release);  // SLEEP
}

bool LinkBells::silence(Bell bell) {
  const bool rung = bells_[index(bell)].silence();
  // The bell of a dead connection rings forever: rings it again. `set_gone` precedes the first of these rings.
  if (is_gone()) notify(bell);
  return rung;
}

}  // namespace wherry::fabric::ofi
