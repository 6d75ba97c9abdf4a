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

/// A description of the same file. One for ranges is to take read and write locks, since an owner may have the file
/// open several times; a client has nothing to write by it. One for the whole file takes any lock, however it is open.
UniqueFd description_of(int descriptor, bool whole, bool read_only) {
  const int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  if (!whole && !read_only) {
    UniqueFd both = open_again(descriptor, O_RDWR | flags);
    if (both.valid()) return both;
  }
  UniqueFd made = open_again(descriptor, (::fcntl(descriptor, F_GETFL) & O_ACCMODE) | flags);
  // A file whose mode has changed since it was opened. The description that is there belongs to this one owner.
  if (!made.valid() && whole) made = UniqueFd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  return made;
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
    return {.error = error};
  }
  return {.value = handles_.add({.backing = std::make_unique<Backing>(std::move(made)), .locks = true})};
}

Outcome Calls::set_lock(const Request& request) {
  const layout::FileRequest& header = request.header;
  if ((header.flags & ~layout::kFileLockWhole) != 0) return {.error = EINVAL};
  struct flock range{};
  if (const int error = range_of(header, range); error != 0) return {.error = error};
  const OpenFile* const file = handles_.find_locks(header.handle);
  if (file == nullptr) return {.error = EBADF};
  const int descriptor = file->backing->descriptor();
  const int result = header.flags == layout::kFileLockWhole
                         ? ::flock(descriptor, kernel_type_of(header.mode)->whole | LOCK_NB)
                         : ::fcntl(descriptor, F_OFD_SETLK, &range);
  return {.error = result == 0 ? 0 : errno};
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
