// SPDX-License-Identifier: Apache-2.0
#include "file/api/kernel_source.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "file/mapped/truncations.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

constexpr std::size_t kParts = 64;  // per system call

}  // namespace

/// Moves everything, up to the end of the file or an error. A single part goes by the `plain` call, which costs less.
Result KernelSource::move(long plain, long vectored, std::uint64_t offset, std::span<const iovec> parts) {
  std::size_t done = 0;
  std::size_t within = 0;  // bytes of the first part that are done
  if (parts.size() == 1) {
    const long moved = ::syscall(plain, file_.get(), parts[0].iov_base, parts[0].iov_len, offset);
    if (moved == 0) return Result::moved(0);
    if (moved < 0 && errno != EINTR) return Result::failure(errno);
    if (moved > 0) done = within = static_cast<std::size_t>(moved);
  }
  while (!parts.empty()) {
    if (parts.front().iov_len == within) {
      parts = parts.subspan(1);
      within = 0;
      continue;
    }
    std::array<iovec, kParts> now;
    const std::size_t count = std::min(parts.size(), now.size());
    std::copy_n(parts.begin(), count, now.begin());
    now[0].iov_base = static_cast<std::byte*>(now[0].iov_base) + within;
    now[0].iov_len -= within;
    const long moved = ::syscall(vectored, file_.get(), now.data(), count, offset + done, 0L);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return Result::failure(errno, done);
    if (moved == 0) break;
    done += static_cast<std::size_t>(moved);
    within += static_cast<std::size_t>(moved);
    while (!parts.empty() && within >= parts.front().iov_len) {
      within -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
  }
  return Result::moved(done);
}

Result KernelSource::read(std::uint64_t offset, std::span<const iovec> into) {
  return move(SYS_pread64, SYS_preadv, offset, into);
}

Result KernelSource::write(std::uint64_t offset, std::span<const iovec> from) {
  return move(SYS_pwrite64, SYS_pwritev, offset, from);
}

/// One call: after a short write, other programs may append before the next call.
Result KernelSource::append(std::span<const iovec> from) {
  while (true) {
    const long put = ::syscall(SYS_writev, file_.get(), from.data(), from.size());
    if (put >= 0) return Result::moved(static_cast<std::size_t>(put));
    if (errno != EINTR) return Result::failure(errno);
  }
}

int KernelSource::flush(bool data_only) {
  return ::syscall(data_only ? SYS_fdatasync : SYS_fsync, file_.get()) == 0 ? 0 : errno;
}

int KernelSource::status(layout::FileStatus& status) { return status_of(file_.get(), status); }

int KernelSource::set_size(std::uint64_t size) { return mapped::set_size(file_.get(), size); }

/// Ignores EINTR: close(2) has released the descriptor then, and no write was deferred.
int KernelSource::close() {
  const long result = ::syscall(SYS_close, file_.release());
  return result == 0 || errno == EINTR ? 0 : errno;
}

}  // namespace wherry::file
