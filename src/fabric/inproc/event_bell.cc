// SPDX-License-Identifier: Apache-2.0
#include "fabric/inproc/event_bell.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace wherry::fabric::inproc {

namespace {

timespec until(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::max(deadline - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds);
  return {.tv_sec = static_cast<std::time_t>(seconds.count()), .tv_nsec = static_cast<long>(rest.count())};
}

}  // namespace

EventBell::EventBell() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) throw Error(errno, "make a bell", "", "raise the limit on open files (ulimit -n)");
}

void EventBell::ring() noexcept {
  const std::uint64_t once = 1;
  // It fails only where the counter is full, and then the bell is rung anyway.
  [[maybe_unused]] const auto written = ::write(event_.get(), &once, sizeof(once));
}

bool EventBell::silence() noexcept {
  std::uint64_t rings = 0;
  return ::read(event_.get(), &rings, sizeof(rings)) == sizeof(rings);
}

bool EventBell::await(Deadline deadline) const noexcept {
  pollfd entry{.fd = event_.get(), .events = POLLIN, .revents = 0};
  for (;;) {
    const timespec left = deadline ? until(*deadline) : timespec{};
    const int ready = ::ppoll(&entry, 1, deadline ? &left : nullptr, nullptr);
    if (ready > 0) return true;
    if (ready == 0) return false;  // a signal handler (EINTR) does not end the sleep
  }
}

}  // namespace wherry::fabric::inproc
