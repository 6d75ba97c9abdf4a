// SPDX-License-Identifier: Apache-2.0
#include "file/wire/status.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <cerrno>

namespace wherry::file {
namespace {

constexpr std::uint32_t kNanosecondsPerSecond = 1'000'000'000;

layout::FileTime time_of(const struct statx_timestamp& time) { return {time.tv_sec, time.tv_nsec, 0}; }

}  // namespace

int status_of(int descriptor, layout::FileStatus& status) { return status_of(descriptor, "", status); }

int status_of(int directory, const char* name, layout::FileStatus& status) {
  struct statx found{};
  constexpr int kFlags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  if (::statx(directory, name, kFlags, STATX_BASIC_STATS | STATX_BTIME, &found) != 0) return errno;
  status = {.device = ::makedev(found.stx_dev_major, found.stx_dev_minor),
            .inode = found.stx_ino,
            .size = found.stx_size,
            .blocks = found.stx_blocks,
            .mode = found.stx_mode,
            .links = found.stx_nlink,
            .user = found.stx_uid,
            .group = found.stx_gid,
            .special_device = ::makedev(found.stx_rdev_major, found.stx_rdev_minor),
            .block_bytes = found.stx_blksize,
            .has_birth = (found.stx_mask & STATX_BTIME) != 0 ? 1U : 0U,
            .accessed = time_of(found.stx_atime),
            .modified = time_of(found.stx_mtime),
            .changed = time_of(found.stx_ctime),
            .born = time_of(found.stx_btime)};
  return 0;
}

int file_system_of(int descriptor, layout::FileSystemStatus& status) {
  struct statfs found{};
  if (::fstatfs(descriptor, &found) != 0) return errno;
  status = {.type = static_cast<std::uint64_t>(found.f_type),
            .block_bytes = static_cast<std::uint64_t>(found.f_bsize),
            .blocks = found.f_blocks,
            .free_blocks = found.f_bfree,
            .available_blocks = found.f_bavail,
            .files = found.f_files,
            .free_files = found.f_ffree,
            .name_bytes = static_cast<std::uint64_t>(found.f_namelen)};
  return 0;
}

bool to_timespec(const layout::FileTime& time, timespec& result) {
  const bool special = time.nanoseconds == layout::kFileTimeNow || time.nanoseconds == layout::kFileTimeKept;
  if (!special && time.nanoseconds >= kNanosecondsPerSecond) return false;
  static_assert(layout::kFileTimeNow == UTIME_NOW && layout::kFileTimeKept == UTIME_OMIT);
  result = {.tv_sec = static_cast<time_t>(time.seconds), .tv_nsec = static_cast<long>(time.nanoseconds)};
  return true;
}

std::uint64_t nanoseconds_of(const layout::FileTime& time) {
  return static_cast<std::uint64_t>(time.seconds) * kNanosecondsPerSecond + time.nanoseconds;
}

std::uint32_t bits_dropped(std::uint32_t mode, std::uint32_t by) {
  const bool by_user = (by & layout::kFileWriteByUser) != 0;
  const bool drops_group = (by_user && (mode & S_IXGRP) != 0) || (by & layout::kFileWriteByOutsider) != 0;
  return (by_user ? mode & S_ISUID : 0) | (drops_group ? mode & S_ISGID : 0);
}

}  // namespace wherry::file
