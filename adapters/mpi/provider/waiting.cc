// SPDX-License-Identifier: Apache-2.0
#include "waiting.hpp"

#include <sched.h>

#include <algorithm>

#include "arch/ticks.hpp"

namespace wherry::mpi {
namespace {

// Calls with more than this between them are of a program that does something else, too.
constexpr std::uint64_t kTogether = 50'000;  // ticks: 10 to 50 us
// Calls in vain before the first sleep: a few times as long as a wake-up takes; where processes wait for processors,
// only as long as a peer that is running needs to answer.
constexpr std::uint32_t kLooks = 4000;
constexpr std::uint32_t kCrowdedLooks = 40;
constexpr std::uint32_t kLooksPerYield = 10;
constexpr std::chrono::milliseconds kRest{1};

std::size_t allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<std::size_t>(CPU_COUNT(&set)) : 1;
}

}  // namespace

Waiting::Waiting(DomainLock& lock) : lock_(lock), processors_(allowed_processors()) {}

void Waiting::add(Messenger& messenger) {
  if (std::ranges::find(messengers_, &messenger) == messengers_.end()) messengers_.push_back(&messenger);
}

void Waiting::remove(Messenger& messenger) { std::erase(messengers_, &messenger); }

bool Waiting::progress() noexcept {
  bool moved = false;
  for (Messenger* messenger : messengers_) moved |= messenger->progress();
  return moved;
}

bool Waiting::may_sleep() noexcept {
  bool may = true;
  for (Messenger* messenger : messengers_) may &= messenger->may_sleep();
  return may;
}

bool Waiting::is_crowded() const {
  return std::ranges::any_of(messengers_, [&](const Messenger* each) { return each->links() > processors_; });
}

void Waiting::rest() noexcept {
  const std::uint64_t now = arch::ticks();
  vain_ = now - last_ < kTogether && activity_ == lock_.activity() ? vain_ + 1 : 0;
  last_ = now;
  activity_ = lock_.activity();
  if (vain_ >= (is_crowded() ? kCrowdedLooks : kLooks)) {
    sleep(kRest);
    last_ = arch::ticks();
  } else if (vain_ % kLooksPerYield == kLooksPerYield - 1) {
    lock_.pass_on();
    if (is_crowded()) sched_yield();
  }
}

void Waiting::sleep_until(std::optional<std::chrono::steady_clock::time_point> deadline) noexcept {
  std::chrono::nanoseconds most = std::chrono::seconds(1);
  if (deadline) most = std::clamp<std::chrono::nanoseconds>(*deadline - std::chrono::steady_clock::now(), {}, most);
  sleep(most);
}

// With several mailboxes it looks at the others soon.
void Waiting::sleep(std::chrono::nanoseconds most) noexcept {
  if (messengers_.empty()) {
    sched_yield();
    return;
  }
  if (messengers_.size() > 1) most = std::min<std::chrono::nanoseconds>(most, std::chrono::microseconds(100));
  lock_.sleep(*messengers_.front(), std::chrono::ceil<std::chrono::milliseconds>(most));
}

void Waiting::interrupt() noexcept {
  for (Messenger* messenger : messengers_) messenger->interrupt();
}

}  // namespace wherry::mpi
