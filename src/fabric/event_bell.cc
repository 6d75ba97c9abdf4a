// SPDX-License-Identifier: Apache-2.0
#include "fabric/event_bell.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace wherry::fabric {

EventBell::EventBell() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) {
    throw Error(errno, "make a bell", "", "raise the limit of open files (ulimit -n), or close streams");
  }
}

void EventBell::ring() const noexcept {
  // A full counter is ringing already; a write would block if the peer has taken O_NONBLOCK off.
  pollfd room{.fd = event_.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&room, 1, 0) != 1) return;
  const std::uint64_t once = 1;
  [[maybe_unused]] const auto written = ::write(event_.get(), &once, sizeof(once));
}

bool EventBell::silence() const noexcept {
  std::uint64_t rings = 0;
  const iovec into{&rings, sizeof(rings)};
  // RWF_NOWAIT holds for this call, whatever the peer has done to the file's flags.
  while (true) {
    const ssize_t n = ::preadv2(event_.get(), &into, 1, -1, RWF_NOWAIT);
    if (n >= 0 || errno != EINTR) return n == sizeof(rings);
  }
}

bool EventBell::await(Deadline deadline) const noexcept {
  pollfd entry{.fd = event_.get(), .events = POLLIN, .revents = 0};
  while (true) {
    timespec storage{};
    const int ready = ::ppoll(&entry, 1, time_left(deadline, storage), nullptr);
    if (ready > 0) return true;
    if (ready == 0) return false;  // a signal handler (EINTR) does not end the sleep
  }
}

const timespec* time_left(const Deadline& deadline, timespec& storage) noexcept {
  if (!deadline) return nullptr;
  using std::chrono::steady_clock;
  const auto left = std::max(*deadline - steady_clock::now(), steady_clock::duration::zero());
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  storage = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  return &storage;
}

}  // namespace wherry::fabric
