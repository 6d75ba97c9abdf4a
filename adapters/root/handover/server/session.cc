// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <algorithm>

namespace wherry::root {

std::uint64_t Shown::show(Windows windows, Lease& lease) {
  const std::size_t bytes = lease.backed();
  auto window = std::find_if(windows_.begin(), windows_.end(),
                             [&](const Window& known) { return known.lease == lease.number(); });
  if (window == windows_.end()) {
    if (windows_.size() == kMost) {
      const Window& oldest = windows_.front();
      if (oldest.bytes != 0) (void)windows.remove(oldest.offset, oldest.bytes);
      windows_.pop_front();
    }
    window = windows_.insert(windows_.end(), {.lease = lease.number(), .offset = next_offset_, .bytes = 0});
    next_offset_ += lease.memory().size();
  }
  if (window->bytes < bytes) {
    lease.expose(windows, window->offset, window->bytes, bytes);
    window->bytes = bytes;
  }
  windows_.splice(windows_.end(), windows_, window);
  return window->offset;
}

std::vector<std::uint64_t> Shown::numbers() const {
  std::vector<std::uint64_t> numbers;
  for (const Window& window : windows_) numbers.push_back(window.lease);
  return numbers;
}

}  // namespace wherry::root
