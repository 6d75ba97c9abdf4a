// SPDX-License-Identifier: Apache-2.0
#include "stepping_aside.hpp"

#include <atomic>
#include <cerrno>

#include "descriptors.hpp"
#include "file/mapped/regions.hpp"
#include "sharing.hpp"

namespace wherry::preload {
namespace {

constinit std::atomic<bool> aside{false};

}  // namespace

void step_aside() noexcept {
  if (aside.load(std::memory_order_relaxed)) return;
  const int error = errno;
  share_all_for_good();
  aside.store(true, std::memory_order_relaxed);
  errno = error;
}

bool stands_aside() noexcept { return aside.load(std::memory_order_relaxed); }

void unmap_for_good() noexcept {
  const int error = errno;
  file::mapped::map_no_more();
  for (int fd = 0; fd < highest_descriptor(); fd++) drop_mapping(fd);
  errno = error;
}

}  // namespace wherry::preload
