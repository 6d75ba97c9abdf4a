// SPDX-License-Identifier: Apache-2.0
// Locks. An owner of locks is an open file description of its own, so that the kernel keeps the server's clients, and
// the programs of its machine, apart. No call waits.
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "file/server/server_calls.hpp"

namespace wherry::file {
namespace {

using layout::FileLock;
using layout::FileLockType;

/// What the kernel calls a type of lock, for fcntl and for flock.
struct KernelType {
  short range;
  int whole;
};

std::optional<KernelType> kernel_type_of(std::uint32_t type) {
  switch (static_cast<FileLockType>(type)) {
    case FileLockType::none:
      return KernelType{F_UNLCK, LOCK_UN};
    case FileLockType::read:
      return KernelType{F_RDLCK, LOCK_SH};
    case FileLockType::write:
      return KernelType{F_WRLCK, LOCK_EX};
  }
  return {};
}

FileLockType type_of(short range) {
  if (range == F_UNLCK) return FileLockType::none;
  return range == F_RDLCK ? FileLockType::read : FileLockType::write;
}

/// A range as the kernel takes it, or an errno value.
int range_of(const layout::FileRequest& header, struct flock& range) {
  const auto type = kernel_type_of(header.mode);
  if (!type || header.offset > INT64_MAX || header.length > INT64_MAX) return EINVAL;
  range = {};
  range.l_type = type->range;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(header.offset);
  range.l_len = static_cast<off_t>(header.length);
  return 0;
}

/// Of one handle. The kernel has no bound for it.
constexpr std::size_t kMostRanges = 65536;
/// No data goes by a description of locks. With O_APPEND it can be opened also where a file may only grow.
constexpr int kOpenFlags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_APPEND;

bool writes(int descriptor) { return (::fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY; }

/// A description of the same file. It is open for writing only if the client's file is: the host may not run a program
/// that is open for writing, and file systems in layers copy it. One for ranges then takes read and write locks, since
/// an owner may have the file open several times. One for the whole file takes any lock, however it is open.
UniqueFd description_of(int descriptor, bool whole, bool read_only) {
  if (!whole && !read_only && writes(descriptor)) {
    UniqueFd both = open_again(descriptor, O_RDWR | kOpenFlags);
    if (both.valid()) return both;
  }
  UniqueFd made = open_again(descriptor, (::fcntl(descriptor, F_GETFL) & O_ACCMODE) | kOpenFlags);
  // A file whose mode has changed since it was opened. The description that is there belongs to this one owner.
  if (!made.valid() && whole) made = UniqueFd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  return made;
}

int lock_range(int descriptor, struct flock range) { return ::fcntl(descriptor, F_OFD_SETLK, &range) == 0 ? 0 : errno; }

/// For the first write lock of an owner of read locks. A description that is open for writing gets the same read locks,
/// which conflict with no lock that is there, before those of the first description end.
int open_for_writing(OpenFile& file) {
  UniqueFd both = open_again(file.backing->descriptor(), O_RDWR | kOpenFlags);
  if (!both.valid()) return errno == EAGAIN ? EAGAIN : ENOLCK;
  for (const FileLock& held : file.locks->all()) {
    struct flock range{};
    range.l_type = F_RDLCK;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(held.offset);
    range.l_len = static_cast<off_t>(held.length);
    if (const int error = lock_range(both.get(), range); error != 0) return error;
  }
  file.backing = std::make_unique<Backing>(std::move(both));
  return 0;
}

}  // namespace

Outcome Calls::open_locks(const Request& request) {
  const std::uint32_t flags = request.header.flags;
  if ((flags & ~layout::kFileLockWhole) != 0) return {.error = EINVAL};
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  if (const int error = handles_.reserve(); error != 0) return {.error = error};
  UniqueFd made = description_of(file->backing->descriptor(), flags == layout::kFileLockWhole, terms_.read_only);
  if (!made.valid()) {
    const int error = errno;
    handles_.give_up();
    return {.error = error, .leased = error == EAGAIN};
  }
  return {.value = handles_.add(
              {.backing = std::make_unique<Backing>(std::move(made)), .locks = std::make_unique<HeldLocks>()})};
}

Outcome Calls::set_lock(const Request& request) {
  const layout::FileRequest& header = request.header;
  if ((header.flags & ~layout::kFileLockWhole) != 0) return {.error = EINVAL};
  struct flock range{};
  if (const int error = range_of(header, range); error != 0) return {.error = error};
  OpenFile* const file = handles_.find_locks(header.handle);
  if (file == nullptr) return {.error = EBADF};
  if (header.flags == layout::kFileLockWhole) {
    const int type = kernel_type_of(header.mode)->whole;
    return {.error = ::flock(file->backing->descriptor(), type | LOCK_NB) == 0 ? 0 : errno};
  }
  const FileLock wanted{.offset = header.offset, .length = header.length, .type = header.mode, .reserved = 0};
  const std::size_t count = file->locks->count_with(wanted);
  if (count > kMostRanges && count > file->locks->count()) return {.error = ENOLCK};
  if (range.l_type == F_WRLCK && !terms_.read_only && !writes(file->backing->descriptor())) {
    if (const int error = open_for_writing(*file); error != 0) return {.error = error, .leased = error == EAGAIN};
  }
  const int error = lock_range(file->backing->descriptor(), range);
  if (error == 0) file->locks->set(wanted);
  return {.error = error};
}

/// A handle of `open` has no locks, so that every lock is in its way.
Outcome Calls::get_lock(const Request& request) {
  struct flock range{};
  if (const int error = range_of(request.header, range); error != 0) return {.error = error};
  const OpenFile* file = handles_.find_locks(request.header.handle);
  if (file == nullptr) file = handles_.find(request.header.handle);
  if (file == nullptr) return {.error = EBADF};
  if (::fcntl(file->backing->descriptor(), F_OFD_GETLK, &range) != 0) return {.error = errno};
  const FileLock found{.offset = static_cast<std::uint64_t>(range.l_start),
                       .length = static_cast<std::uint64_t>(range.l_len),
                       .type = static_cast<std::uint32_t>(type_of(range.l_type)),
                       .reserved = 0};
  Outcome outcome;
  const auto bytes = std::as_bytes(std::span(&found, 1));
  outcome.payload.assign(bytes.begin(), bytes.end());
  return outcome;
}

}  // namespace wherry::file
