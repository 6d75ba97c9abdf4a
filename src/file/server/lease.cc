// SPDX-License-Identifier: Apache-2.0
#include "file/server/lease.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace wherry::file {

/// The end of a lease resets its signal and its owner, so both are set each time.
bool take_lease(int descriptor, int type, pid_t thread) {
  const f_owner_ex owner{.type = F_OWNER_TID, .pid = thread};
  return ::fcntl(descriptor, F_SETSIG, kLeaseSignal) == 0 && ::fcntl(descriptor, F_SETOWN_EX, &owner) == 0 &&
         ::fcntl(descriptor, F_SETLEASE, type) == 0;
}

bool is_local(int descriptor) {
  struct statfs found{};
  if (::fstatfs(descriptor, &found) != 0) return false;
  constexpr auto kXfs = 0x58465342;  // XFS_SUPER_MAGIC, which no kernel header defines
  constexpr std::array kLocal{std::int64_t{EXT4_SUPER_MAGIC},  std::int64_t{kXfs},
                              std::int64_t{BTRFS_SUPER_MAGIC}, std::int64_t{TMPFS_MAGIC},
                              std::int64_t{F2FS_SUPER_MAGIC},  std::int64_t{OVERLAYFS_SUPER_MAGIC}};
  return std::ranges::find(kLocal, std::int64_t{found.f_type}) != kLocal.end();
}

bool has_no_writer(int descriptor) {
  if (!take_lease(descriptor, F_RDLCK, ::gettid())) return false;
  const bool is_whole = ::fcntl(descriptor, F_GETLEASE) == F_RDLCK;
  ::fcntl(descriptor, F_SETLEASE, F_UNLCK);
  return is_whole;
}

}  // namespace wherry::file
