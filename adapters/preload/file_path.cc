// SPDX-License-Identifier: Apache-2.0
//
// The only function of this library that programs call by name.
#include <wherry/file_path.h>

#include <fcntl.h>

#include <cerrno>

#include "descriptors.hpp"
#include "direct_files.hpp"
#include "directories.hpp"
#include "file/mapped/progress.hpp"
#include "hook.hpp"
#include "next.hpp"
#include "sharing.hpp"

using namespace wherry::preload;
using wherry::file::mapped::Progress;

namespace {

Choice choice_of(int path) {
  switch (path) {
    case WHERRY_PATH_AUTO:
      return Choice::automatic;
    case WHERRY_PATH_CACHE:
      return Choice::cache;
    case WHERRY_PATH_HOST:
      return Choice::host;
    default:
      return Choice::kernel;
  }
}

}  // namespace

WHERRY_HOOK int wherry_fd_set_path(int fd, int path) {
  if (WHERRY_NEXT(fcntl, fd, F_GETFD) < 0) return -1;
  if (path < WHERRY_PATH_AUTO || path > WHERRY_PATH_HOST) {
    errno = EINVAL;
    return -1;
  }
  Entry* const entry = entry_of(fd);
  if (entry == nullptr) return 0;
  const bool in_place = path == WHERRY_PATH_AUTO || path == WHERRY_PATH_CACHE;
  if (!in_place) {
    share_offset(fd);
    never_track(fd);
  }
  const Choice choice = choice_of(path);
  entry->choice.store(choice, std::memory_order_relaxed);
  if (choice == Choice::automatic) allow_direct(Path::automatic);
  if (choice == Choice::host) allow_direct(Path::host);
  if (choice != Choice::kernel) forget_direct(fd);  // the next transfer looks at the choice
  if (!in_place) return 0;
  if (entry->may_be_tracked()) {
    Progress progress = Progress::of(entry->progress.load(std::memory_order_relaxed));
    progress.policy.way = wherry::file::mapped::ReadPolicy::Way::look;
    entry->progress.store(progress.word(), std::memory_order_relaxed);
  }
  // A descriptor that was left to the kernel is checked again.
  State before = entry->load();
  while (before.mode() == Mode::never && !entry->exchange(before, before.with(Mode::unknown, 0))) {
  }
  return 0;
}
