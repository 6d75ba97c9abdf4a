// SPDX-License-Identifier: Apache-2.0
#include "file/client/lent_file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/move_above_fd_setsize.hpp"
#include "base/not_cancelled.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

static_assert(LentFile::kMostParts == IOV_MAX);

/// Lent descriptors of this process.
std::atomic<std::uint64_t> shares{0};

/// Leaves descriptors for the program's own files, even if it has many files of a host open.
bool take_share() {
  rlimit limit{};
  const std::uint64_t most = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 4 : 0;
  if (shares.fetch_add(1, std::memory_order_relaxed) < most) return true;
  shares.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

/// Moves a descriptor out of the low numbers: they are few, and a program that has closed its standard output must not
/// write to a host's file.
UniqueFd out_of_the_way(UniqueFd taken, int& error) {
  taken = move_above_fd_setsize(std::move(taken));
  if (taken.get() > STDERR_FILENO) return taken;
  UniqueFd moved(::fcntl(taken.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  error = moved.valid() ? 0 : errno;
  return moved;
}

bool is_opened_as(int descriptor, std::uint32_t flags) {
  const int mode = ::fcntl(descriptor, F_GETFL);
  const int access = mode & O_ACCMODE;
  const bool reads = access == O_RDONLY || access == O_RDWR;
  const bool writes = access == O_WRONLY || access == O_RDWR;
  return mode >= 0 && reads == ((flags & layout::kFileOpenRead) != 0 || !writes) &&
         writes == ((flags & layout::kFileOpenWrite) != 0) &&
         ((mode & O_APPEND) != 0) == ((flags & layout::kFileOpenAppend) != 0) &&
         (mode & O_SYNC) == (((flags & layout::kFileOpenSync) != 0 ? O_SYNC : 0) |
                             ((flags & layout::kFileOpenDataSync) != 0 ? O_DSYNC : 0));
}

bool is_file_of(int descriptor, const layout::FileStatus& status) {
  layout::FileStatus found{};
  return status_of(descriptor, found) == 0 && S_ISREG(found.mode) && found.device == status.device &&
         found.inode == status.inode;
}

/// Moves all of `buffers` by `call(parts, count, offset)`, or until it returns 0.
template <class Call>
Result move_all(std::uint64_t offset, std::span<const iovec> buffers, Call call) {
  const NotCancelled here;
  std::size_t moved = 0;
  std::size_t in_first = 0;  // bytes of the first buffer that are done
  while (!buffers.empty()) {
    const iovec first{static_cast<std::byte*>(buffers[0].iov_base) + in_first, buffers[0].iov_len - in_first};
    // A partly done buffer goes alone.
    const auto parts =
        in_first != 0 ? std::span(&first, 1) : buffers.first(std::min(buffers.size(), LentFile::kMostParts));
    const ssize_t n = call(parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset + moved));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Result::failure(errno, moved);
    moved += static_cast<std::size_t>(n);
    in_first += static_cast<std::size_t>(n);
    const bool empty = std::ranges::all_of(parts, [](const iovec& part) { return part.iov_len == 0; });
    if (n == 0 && !empty) break;
    while (!buffers.empty() && in_first >= buffers[0].iov_len) {
      in_first -= buffers[0].iov_len;
      buffers = buffers.subspan(1);
    }
  }
  return Result::moved(moved);
}

bool fits(std::uint64_t offset, std::span<const iovec> buffers) {
  std::uint64_t bytes = 0;
  for (const iovec& buffer : buffers) bytes += buffer.iov_len;
  return bytes <= INT64_MAX && offset <= INT64_MAX - bytes;
}

}  // namespace

bool LentFile::is_refused(int owner, std::uint64_t number) {
  if (number > INT_MAX) return false;
  const UniqueFd taken(static_cast<int>(::syscall(SYS_pidfd_getfd, owner, static_cast<int>(number), 0)));
  return !taken.valid() && (errno == EPERM || errno == ENOSYS);
}

std::shared_ptr<LentFile> LentFile::take(int owner, std::uint64_t number, const layout::FileStatus& status,
                                         std::uint32_t flags, int& error) {
  const NotCancelled here;
  error = ESRCH;
  if (owner < 0 || number > INT_MAX) return nullptr;
  error = EMFILE;
  if (!take_share()) return nullptr;
  UniqueFd taken(static_cast<int>(::syscall(SYS_pidfd_getfd, owner, static_cast<int>(number), 0)));
  error = taken.valid() ? 0 : errno;
  if (error == 0 && (!is_file_of(taken.get(), status) || !is_opened_as(taken.get(), flags))) error = ESTALE;
  if (error == 0) taken = out_of_the_way(std::move(taken), error);
  if (error != 0) {
    shares.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  return std::shared_ptr<LentFile>(new LentFile(std::move(taken), (flags & layout::kFileOpenAppend) != 0, status.size));
}

std::shared_ptr<LentFile> LentFile::keep(UniqueFd descriptor, std::uint32_t flags) {
  shares.fetch_add(1, std::memory_order_relaxed);
  layout::FileStatus status{};
  status_of(descriptor.get(), status);
  return std::shared_ptr<LentFile>(
      new LentFile(std::move(descriptor), (flags & layout::kFileOpenAppend) != 0, status.size));
}

LentFile::~LentFile() { shares.fetch_sub(1, std::memory_order_relaxed); }

UniqueFd LentFile::process(std::int64_t number) {
  if (number <= 0 || number > INT_MAX) return {};
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(number), 0)));
}

Result LentFile::read(std::uint64_t offset, std::span<const iovec> into) const {
  if (!fits(offset, into)) return Result::failure(EINVAL);
  return move_all(offset, into, [&](const iovec* parts, int count, off_t at) {
    return count == 1 ? ::pread(descriptor_.get(), parts->iov_base, parts->iov_len, at)
                      : ::preadv(descriptor_.get(), parts, count, at);
  });
}

Result LentFile::write(std::uint64_t offset, std::span<const iovec> from) const {
  if (!fits(offset, from)) return Result::failure(EINVAL);
  const Result result = move_all(offset, from, [&](const iovec* parts, int count, off_t at) {
    return count == 1 ? ::pwrite(descriptor_.get(), parts->iov_base, parts->iov_len, at)
                      : ::pwritev(descriptor_.get(), parts, count, at);
  });
  return result.bytes != 0 ? Result::moved(result.bytes) : result;
}

Result LentFile::append(std::span<const iovec> from) {
  const NotCancelled here;
  const std::lock_guard lock(mutex_);
  ssize_t n = -1;
  do {
    n = ::writev(descriptor_.get(), from.data(), static_cast<int>(from.size()));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return Result::failure(errno);
  const off_t position = ::lseek(descriptor_.get(), 0, SEEK_CUR);
  if (position > 0) end_ = static_cast<std::uint64_t>(position);
  return Result::moved(static_cast<std::size_t>(n));
}

std::uint64_t LentFile::end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

int LentFile::status(layout::FileStatus& status) const {
  const NotCancelled here;
  return status_of(descriptor_.get(), status);
}

int LentFile::set_size(std::uint64_t size) const {
  const NotCancelled here;
  if (size > INT64_MAX) return EINVAL;
  return ::ftruncate(descriptor_.get(), static_cast<off_t>(size)) == 0 ? 0 : errno;
}

int LentFile::set_mode(std::uint32_t mode) const {
  const NotCancelled here;
  return ::fchmod(descriptor_.get(), mode & 07777U) == 0 ? 0 : errno;
}

int LentFile::set_owner(std::uint32_t user, std::uint32_t group) const {
  const NotCancelled here;
  return ::fchown(descriptor_.get(), user, group) == 0 ? 0 : errno;
}

int LentFile::set_times(const layout::FileTimes& times) const {
  const NotCancelled here;
  std::array<timespec, 2> wanted{};
  if (!to_timespec(times.accessed, wanted[0]) || !to_timespec(times.modified, wanted[1])) return EINVAL;
  return ::futimens(descriptor_.get(), wanted.data()) == 0 ? 0 : errno;
}

int LentFile::flush(bool data_only) const {
  const NotCancelled here;
  return (data_only ? ::fdatasync(descriptor_.get()) : ::fsync(descriptor_.get())) == 0 ? 0 : errno;
}

}  // namespace wherry::file
