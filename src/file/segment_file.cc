// SPDX-License-Identifier: Apache-2.0
#include "file/segment_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>

#include <wherry/error.hpp>

#include "base/cgroup.hpp"
#include "file/cache_segment.hpp"
#include "file/large_pages.hpp"

namespace wherry::file {
namespace {

constexpr std::uint64_t kMostByDefault = std::uint64_t{1} << 30;
constexpr std::uint64_t kSetBytes = layout::kFileWays * layout::kFileBlock;

[[noreturn]] void fail_to_make(int error, const std::string& path, const std::string& advice) {
  throw Error(error, "make the cache", path, advice);
}

}  // namespace

UniqueFd make_segment(const std::string& path, std::uint64_t bytes) {
  const std::uint64_t sets = std::min(std::bit_floor(std::max(bytes, kLeastCache) / kSetBytes), layout::kFileMostSets);
  const std::string directory = std::filesystem::path(path).parent_path();
  UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) fail_to_make(errno, path, "the cache needs a tmpfs that this user may write to, such as /dev/shm");
  if (::fchmod(file.get(), 0600) != 0 ||
      ::ftruncate(file.get(), static_cast<off_t>(layout::file_segment_bytes(sets))) != 0) {
    fail_to_make(errno, path,
                 "the limit of file sizes (ulimit -f) may be lower; start a smaller cache (wherry card --cache)");
  }
  const std::size_t tables = layout::file_tables_bytes(sets);
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(tables))) {
    fail_to_make(error, path, "make room in " + directory + ", or start a smaller cache (wherry card --cache)");
  }
  gather_tables(file.get(), tables);
  const std::uint64_t numbers[] = {layout::kFileCacheVersion | std::uint64_t{layout::kFileCacheMagic} << 32, sets,
                                   pid_namespace()};
  static_assert(sizeof numbers == offsetof(layout::FileCacheHeader, reserved0));
  if (::pwrite(file.get(), numbers, sizeof numbers, 0) != static_cast<ssize_t>(sizeof numbers)) {
    fail_to_make(errno, path, "make room in " + directory);
  }
  ::flock(file.get(), LOCK_EX | LOCK_NB);  // it has no name yet, so no other process holds it
  const std::string self = "/proc/self/fd/" + std::to_string(file.get());
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return file;
  if (errno == EEXIST) return {};
  fail_to_make(errno, path, "/proc must be mounted, and the directory be this user's to write to");
}

std::uint64_t default_cache_bytes() {
  std::uint64_t memory = kMostByDefault * 4;
  struct ::sysinfo info{};
  if (::sysinfo(&info) == 0) memory = std::min<std::uint64_t>(memory, std::uint64_t{info.totalram} * info.mem_unit);
  memory = std::min(memory, cgroup_memory_limit().value_or(memory));
  std::uint64_t bytes = memory / 4;
  struct ::statvfs place{};
  if (::statvfs("/dev/shm", &place) == 0 && place.f_blocks != 0) {
    bytes = std::min<std::uint64_t>(bytes, std::uint64_t{place.f_bavail} * place.f_frsize / 2);
  }
  return std::max(bytes, kLeastCache);
}

}  // namespace wherry::file
