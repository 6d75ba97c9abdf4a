// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: the descriptors of this process.
#pragma once

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>

namespace wherry {

/// Returns how many descriptors this process has open.
inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries))) - 1;  // one is the iterator's own
}

/// Waits until `descriptor` is readable. False: the timeout passed.
inline bool becomes_readable(int descriptor, std::chrono::milliseconds timeout) {
  pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const int ready = ::poll(&polled, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (ready >= 0 || errno != EINTR) return ready == 1;
  }
}

}  // namespace wherry
