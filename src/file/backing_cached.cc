// SPDX-License-Identifier: Apache-2.0
#include "file/backing_cached.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "file/cached_file_systems.hpp"
#include "file/kernel_source.hpp"
#include "file/status.hpp"

namespace wherry::file {
namespace {

using wherry::files::Path;

ServedOptions options_of(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return {.readable = (flags & O_ACCMODE) != O_WRONLY,
          .writable = (flags & O_ACCMODE) != O_RDONLY,
          .appends = (flags & O_APPEND) != 0,
          .path = Path::comp};
}

/// As the kernel's calls have it.
ssize_t result_of(const Result& result) {
  if (!result.failed() || result.bytes != 0) return static_cast<ssize_t>(result.bytes);
  errno = result.error;
  return -1;
}

}  // namespace

bool CachedBacking::takes(int descriptor, const layout::FileStatus& status) {
  struct statfs system{};
  return S_ISREG(status.mode) && (::fcntl(descriptor, F_GETFL) & O_DIRECT) == 0 &&
         ::fstatfs(descriptor, &system) == 0 && can_be_cached(system.f_type);
}

CachedBacking::CachedBacking(UniqueFd file, Cache& cache, const layout::FileStatus& status, std::uint64_t now)
    : descriptor_(file.get()),
      file_(std::make_unique<KernelSource>(std::move(file)), Look{.status = status, .clock = now}, cache,
            options_of(descriptor_)) {}

ssize_t CachedBacking::read(std::span<const iovec> into, std::uint64_t offset) {
  return result_of(file_.read(into, offset, Path::comp));
}

ssize_t CachedBacking::write(std::span<const iovec> from, std::uint64_t offset) {
  return result_of(file_.write(from, offset, Path::comp));
}

ssize_t CachedBacking::append(std::span<const std::byte> data) { return result_of(file_.append(data)); }

int CachedBacking::status(layout::FileStatus& status) { return status_of(descriptor_, status); }

}  // namespace wherry::file
