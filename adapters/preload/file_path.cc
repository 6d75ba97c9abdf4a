// SPDX-License-Identifier: Apache-2.0
//
// The one function of this library that programs call by name.
#include <wherry/file_path.h>

#include <fcntl.h>

#include <cerrno>

#include "descriptors.hpp"
#include "hook.hpp"
#include "next.hpp"
#include "progress.hpp"
#include "sharing.hpp"

using namespace wherry::preload;

WHERRY_HOOK int wherry_fd_set_path(int fd, int path) {
  if (WHERRY_NEXT(fcntl, fd, F_GETFD) < 0) return -1;
  if (path < WHERRY_PATH_AUTO || path > WHERRY_PATH_HOST) {
    errno = EINVAL;
    return -1;
  }
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return 0;
  if (path == WHERRY_PATH_LOCAL || path == WHERRY_PATH_HOST) {
    share_offset(fd);
    never_track(fd);
    return 0;
  }
  Progress progress = Progress::of(*entry);
  progress.choice = path == WHERRY_PATH_AUTO ? Progress::Choice::automatic : Progress::Choice::cache;
  progress.policy.way = wherry::file::mapped::ReadPolicy::Way::look;
  progress.store(*entry);
  // What was left to the kernel before is looked at again.
  State before = entry->load();
  while (before.mode() == Mode::never && !entry->exchange(before, before.with(Mode::unknown, 0))) {
  }
  return 0;
}
