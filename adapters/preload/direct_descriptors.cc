// SPDX-License-Identifier: Apache-2.0
#include "direct_descriptors.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "descriptors.hpp"
#include "directories.hpp"
#include "next.hpp"

namespace wherry::preload {

bool look(int fd, struct statx& found) noexcept {
  return ::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_SIZE, &found) == 0;
}

bool knows_size(int fd, std::uint64_t size) noexcept {
  struct statx found{};
  return look(fd, found) && found.stx_size >= size;
}

bool is_on_mount(int fd) noexcept {
  const int error = errno;
  struct statx found{};
  // Which devices are mounts takes a look at all of them. They have no number of a driver.
  const bool is = look(fd, found) && S_ISREG(found.stx_mode) && found.stx_dev_major == 0 &&
                  on_mount_device(found.stx_dev_major, found.stx_dev_minor);
  errno = error;
  return is;
}

std::optional<files::Path> path_of_transfers(int fd) noexcept {
  const auto path = path_past_mount(fd);
  const Entry* const entry = entry_of(fd);
  if (!path || entry == nullptr) return path;
  switch (entry->choice.load(std::memory_order_relaxed)) {
    case Choice::none:
      return path;
    case Choice::automatic:
      return files::Path::automatic;
    case Choice::host:
      return files::Path::host;
    case Choice::cache:
    case Choice::kernel:
      break;
  }
  return files::Path::kernel;
}

std::optional<files::Path> path_on_mount(int fd, const struct statx& found) noexcept {
  if (!S_ISREG(found.stx_mode) || !on_mount_device(found.stx_dev_major, found.stx_dev_minor)) return std::nullopt;
  const auto path = path_of_transfers(fd);
  if (path != files::Path::automatic && path != files::Path::host) return std::nullopt;
  return path;
}

int access_of(int fd) noexcept {
  const int flags = WHERRY_NEXT(fcntl, fd, F_GETFL);
  constexpr int kOther = O_DIRECT | O_PATH | O_SYNC | O_DSYNC;
  if (flags < 0 || (flags & kOther) != 0) return -1;
  const int access = flags & O_ACCMODE;
  return access == O_WRONLY && (flags & O_APPEND) != 0 ? -1 : access;
}

}  // namespace wherry::preload
