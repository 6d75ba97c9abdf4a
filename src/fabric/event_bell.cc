// SPDX-License-Identifier: Apache-2.0
#include "fabric/event_bell.hpp"

#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <cstdint>

#include "base/refused_call.hpp"

namespace wherry::fabric {
namespace {

/// The timer is never set: its interval, which means nothing then, says whether the bell is silent.
constexpr itimerspec kSilent{.it_interval = {.tv_sec = 1, .tv_nsec = 0}, .it_value = {}};
constexpr itimerspec kRung{};
/// But for kernels that have no other way to make it readable.
constexpr itimerspec kRungAtOnce{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1}};

/// TFD_IOC_SET_TICKS, which the headers of the C library lack: makes a timer readable as if it had gone off.
constexpr unsigned long kSetTicks = _IOW('T', 0, std::uint64_t);

}  // namespace

EventBell::EventBell() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!timer_.valid()) {
    throw Error(errno, "make a bell", "", advice_on(errno, "timerfd_create"));
  }
  silence();
}

void EventBell::ring(int bell) noexcept {
  if (::timerfd_settime(bell, 0, &kRung, nullptr) != 0) return;
  const std::uint64_t once = 1;
  // Without CONFIG_CHECKPOINT_RESTORE the timer has to go off by itself, which takes some microseconds more.
  if (::ioctl(bell, kSetTicks, &once) != 0) ::timerfd_settime(bell, 0, &kRungAtOnce, nullptr);
}

bool EventBell::silence() const noexcept {
  itimerspec before = kSilent;
  ::timerfd_settime(timer_.get(), 0, &kSilent, &before);
  return before.it_interval.tv_sec == 0;
}

}  // namespace wherry::fabric
