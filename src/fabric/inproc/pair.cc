// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/pair.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "memory/arena.hpp"
#include "memory/arena_region.hpp"

namespace wherry::fabric::inproc {

Peer this_process(Address address) {
  return {.address = std::move(address), .pid = ::getpid(), .uid = ::geteuid(), .gid = ::getegid()};
}

End::End(std::shared_ptr<Pair> pair, std::size_t side, Peer peer)
    : pair_(std::move(pair)), own_(*pair_->sides[side]), far_(*pair_->sides[1 - side]), peer_(std::move(peer)) {
  start_notifications(own_.page, far_.page, arch::takes_part_in_interrupts());
}

End::~End() = default;

void End::leave() noexcept {
  own_.segment.give_back();
  own_.closed.store(true, std::memory_order_release);  // DEATH
  for (auto& bell : far_.bells) bell.notify();
}

std::shared_ptr<memory::LocalRegion> End::expose(std::span<std::byte> memory) {
  if (!own_.exposes) refuse(peer_);
  return memory::Arena::instance().expose(memory);
}

std::shared_ptr<memory::RemoteRegion> End::reach(const memory::RemoteKey& key, std::size_t bytes, int& error) {
  error = ENXIO;
  if (!far_.exposes || !memory::Arena::instance().exposes(key, bytes)) return nullptr;
  error = 0;
  if (memory::kind_of(key) == memory::KeyKind::arena) return reach_arena(key.place, bytes);
  return reach_private(key.place);
}

std::shared_ptr<memory::RemoteRegion> End::reach_private(std::uint64_t address) {
  return std::make_shared<memory::OwnRegion>(address);
}

void End::arm(Bell bell) {
  silence(bell);
  auto& epoch = sleeps_[index(bell)].epoch;
  epoch += 1 + (epoch & 1);  // the next odd number: each sleep is a new one
  far_.page.waiters[index(bell)].epoch.store(epoch, std::memory_order_release);  // SLEEP
  fence_of_arm(own_.page.publishers[index(bell)].unfenced);                      // SLEEP: pairs with announce()
}

void End::disarm(Bell bell) {
  auto& epoch = sleeps_[index(bell)].epoch;
  epoch += epoch & 1;
  far_.page.waiters[index(bell)].epoch.store(epoch, std::memory_order_release);  // SLEEP
}

bool End::silence(Bell bell) {
  const bool rung = own_.bells[index(bell)].silence();
  // The bell of a dead connection rings forever, so the ring that was taken is restored. The peer sets `closed` first
  // and then rings. So either this ring or the peer's comes after the silence.
  if (peer_gone()) notify_self(bell);
  return rung;
}

Wake End::wait(Bell bell, Deadline deadline) {
  for (;;) {
    if (peer_gone()) return Wake::gone;
    if (silence(bell)) return peer_gone() ? Wake::gone : Wake::rung;
    if (!own_.bells[index(bell)].await(deadline)) return Wake::timeout;
  }
}

}  // namespace wherry::fabric::inproc
