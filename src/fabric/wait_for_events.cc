// SPDX-License-Identifier: Apache-2.0
#include "fabric/wait_for_events.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/not_cancelled.hpp"

namespace wherry::fabric {
namespace {

using std::chrono::steady_clock;

/// The pause between two looks if the kernel refuses ppoll.
constexpr std::chrono::milliseconds kTick{1};

int claim_after_a_tick(std::span<pollfd> polled, const Deadline& deadline) noexcept {
  if (deadline && steady_clock::now() >= *deadline) return 0;
  std::this_thread::sleep_for(kTick);
  for (pollfd& entry : polled) entry.revents = entry.events;
  return static_cast<int>(polled.size());
}

}  // namespace

int wait_for_events(std::span<pollfd> polled, const Deadline& deadline) noexcept {
  const NotCancelled here;
  timespec storage{};
  const int ready = ::ppoll(polled.data(), polled.size(), time_left(deadline, storage), nullptr);
  return ready < 0 && errno != EINTR ? claim_after_a_tick(polled, deadline) : ready;
}

bool wait_until_readable(int descriptor, const Deadline& deadline) noexcept {
  pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
  int ready = -1;
  while (ready < 0) ready = wait_for_events(std::span(&polled, 1), deadline);  // a signal handler ends no wait
  return ready > 0;
}

const timespec* time_left(const Deadline& deadline, timespec& storage) noexcept {
  if (!deadline) return nullptr;
  const auto left = std::max(*deadline - steady_clock::now(), steady_clock::duration::zero());
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  storage = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  return &storage;
}

}  // namespace wherry::fabric
