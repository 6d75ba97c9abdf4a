// SPDX-License-Identifier: Apache-2.0
#include "file/mount/attributes.hpp"

#include <fcntl.h>

#include <array>
#include <utility>

namespace wherry::file::mount {
namespace {

timespec timespec_of(const layout::FileTime& time) {
  return {.tv_sec = static_cast<time_t>(time.seconds), .tv_nsec = static_cast<long>(time.nanoseconds)};
}

}  // namespace

/// File systems number their files from 1, so the upper bits are free.
std::uint64_t inode_of(std::uint64_t inode, std::uint64_t own_device, std::uint64_t device) {
  if (own_device == device) return inode;
  return inode ^ ((own_device * 0x9E3779B97F4A7C15U) & 0xFFFF000000000000U);
}

struct stat stat_of(const layout::FileStatus& status, std::uint64_t device) {
  struct stat result{};
  result.st_ino = inode_of(status.inode, status.device, device);
  result.st_mode = status.mode;
  result.st_nlink = status.links;
  result.st_uid = status.user;
  result.st_gid = status.group;
  result.st_rdev = status.special_device;
  result.st_size = static_cast<off_t>(status.size);
  result.st_blksize = static_cast<blksize_t>(status.block_bytes);
  result.st_blocks = static_cast<blkcnt_t>(status.blocks);
  result.st_atim = timespec_of(status.accessed);
  result.st_mtim = timespec_of(status.modified);
  result.st_ctim = timespec_of(status.changed);
  return result;
}

struct statvfs statvfs_of(const layout::FileSystemStatus& status) {
  struct statvfs result{};
  result.f_bsize = status.block_bytes;
  result.f_frsize = status.block_bytes;
  result.f_blocks = status.blocks;
  result.f_bfree = status.free_blocks;
  result.f_bavail = status.available_blocks;
  result.f_files = status.files;
  result.f_ffree = status.free_files;
  result.f_favail = status.free_files;
  result.f_namemax = status.name_bytes;
  return result;
}

std::uint32_t open_flags_of(int flags) {
  using namespace layout;
  constexpr std::array<std::pair<int, std::uint32_t>, 6> kBits{{{O_APPEND, kFileOpenAppend},
                                                                {O_CREAT, kFileOpenCreate},
                                                                {O_EXCL, kFileOpenExclusive},
                                                                {O_TRUNC, kFileOpenTruncate},
                                                                {O_DIRECTORY, kFileOpenDirectory},
                                                                {O_DSYNC, kFileOpenDataSync}}};
  std::uint32_t wanted = kFileOpenNoFollow;
  const int access = flags & O_ACCMODE;
  if (access != O_WRONLY) wanted |= kFileOpenRead;
  if (access != O_RDONLY) wanted |= kFileOpenWrite;
  for (const auto& [bit, wanted_bit] : kBits) {
    if ((flags & bit) != 0) wanted |= wanted_bit;
  }
  if ((flags & O_SYNC) == O_SYNC) wanted |= kFileOpenSync;
  if (access == O_RDONLY) wanted &= ~kFileOpenAppend;
  return wanted;
}

}  // namespace wherry::file::mount
