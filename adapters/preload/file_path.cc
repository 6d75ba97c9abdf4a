// SPDX-License-Identifier: Apache-2.0
//
// The only function of this library that programs call by name.
#include <wherry/file_path.h>

#include <fcntl.h>

#include <cerrno>

#include "descriptors.hpp"
#include "file/mapped/progress.hpp"
#include "hook.hpp"
#include "next.hpp"
#include "sharing.hpp"

using namespace wherry::preload;
using wherry::file::mapped::Progress;

WHERRY_HOOK int wherry_fd_set_path(int fd, int path) {
  if (WHERRY_NEXT(fcntl, fd, F_GETFD) < 0) return -1;
  if (path < WHERRY_PATH_AUTO || path > WHERRY_PATH_HOST) {
    errno = EINVAL;
    return -1;
  }
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return 0;
  if (path != WHERRY_PATH_AUTO && path != WHERRY_PATH_CACHE) {
    share_offset(fd);
    never_track(fd);
    return 0;
  }
  entry->choice.store(path == WHERRY_PATH_AUTO ? Choice::automatic : Choice::cache, std::memory_order_relaxed);
  Progress progress = Progress::of(entry->progress.load(std::memory_order_relaxed));
  progress.policy.way = wherry::file::mapped::ReadPolicy::Way::look;
  entry->progress.store(progress.word(), std::memory_order_relaxed);
  // A descriptor that was left to the kernel is checked again.
  State before = entry->load();
  while (before.mode() == Mode::never && !entry->exchange(before, before.with(Mode::unknown, 0))) {
  }
  return 0;
}
