// SPDX-License-Identifier: Apache-2.0
#include "memory/sealed_memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace wherry::memory {

bool is_sealed_memory(int descriptor, std::uint64_t bytes) {
  constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSealed) != kSealed) return false;
  struct statfs system{};
  struct stat status{};
  return ::fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC && ::fstat(descriptor, &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) == bytes;
}

}  // namespace wherry::memory
