// SPDX-License-Identifier: Apache-2.0
#include "file/wire/lock_description.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "file/wire/open_again.hpp"

namespace wherry::file {
namespace {

using layout::FileLock;
using layout::FileLockType;

/// The kernel's values for a type of lock, for fcntl and for flock.
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

/// The range in the kernel's form. Empty: no such lock.
std::optional<struct flock> range_of(const FileLock& lock) {
  const auto type = kernel_type_of(lock.type);
  if (!type || lock.offset > INT64_MAX || lock.length > INT64_MAX) return {};
  struct flock range{};
  range.l_type = type->range;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(lock.offset);
  range.l_len = static_cast<off_t>(lock.length);
  return range;
}

/// Limit of one owner. The kernel has none.
constexpr std::size_t kMostRanges = 65536;
/// No data moves by a lock description. With O_APPEND it can be opened also for an append-only file (chattr +a).
constexpr int kOpenFlags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_APPEND;

bool writes(int descriptor) { return (::fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY; }

/// Opens for writing only if the client's file is open for writing. Otherwise the host could not run a program that is
/// being locked, and stacked file systems (overlayfs) would copy it.
UniqueFd description_of(int descriptor, bool is_own, bool whole, bool read_only) {
  if (!whole && !read_only && is_own && writes(descriptor)) {
    UniqueFd both = open_again(descriptor, O_RDWR | kOpenFlags);
    if (both.valid()) return both;
  }
  const int access = is_own ? ::fcntl(descriptor, F_GETFL) & O_ACCMODE : O_RDONLY;
  UniqueFd made = open_again(descriptor, access | kOpenFlags);
  // The file's mode has changed since it was opened. Its own description belongs to this owner alone.
  if (!made.valid() && whole && is_own) made = UniqueFd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  return made;
}

int lock_range(int descriptor, struct flock range) { return ::fcntl(descriptor, F_OFD_SETLK, &range) == 0 ? 0 : errno; }

}  // namespace

std::unique_ptr<LockDescription> LockDescription::open(int descriptor, Descriptor use, bool whole, bool read_only,
                                                       std::shared_ptr<HeldLocks> held) {
  UniqueFd made = description_of(descriptor, use == Descriptor::of_this_owner_alone, whole, read_only);
  if (!made.valid()) return nullptr;
  return std::unique_ptr<LockDescription>(new LockDescription(std::move(made), whole, read_only, std::move(held)));
}

/// For the first write lock of an owner of read locks. The new description, open for writing, gets the same read locks
/// before the first description gives up its own. These conflict with no existing lock.
LockDescription::Answer LockDescription::open_for_writing() {
  UniqueFd both = open_again(descriptor_.get(), O_RDWR | kOpenFlags);
  if (!both.valid()) return errno == EAGAIN ? Answer{EAGAIN, true} : Answer{ENOLCK};
  for (FileLock held : held_->all()) {
    held.type = static_cast<std::uint32_t>(FileLockType::read);
    if (const int error = lock_range(both.get(), *range_of(held)); error != 0) return {error};
  }
  if (keep_) {
    keep_(both.get());
    give_up_all();
  }
  descriptor_ = std::move(both);
  return {};
}

std::unique_ptr<LockDescription> LockDescription::resume(UniqueFd descriptor, bool whole, bool read_only,
                                                         std::shared_ptr<HeldLocks> held) {
  return std::unique_ptr<LockDescription>(
      new LockDescription(std::move(descriptor), whole, read_only, std::move(held)));
}

LockDescription::~LockDescription() {
  if (keep_) give_up_all();
}

void LockDescription::share(std::function<void(int)> keep) {
  keep_ = std::move(keep);
  keep_(descriptor_.get());
}

/// Needed if duplicates exist: they keep the description, and would keep its locks.
void LockDescription::give_up_all() const {
  struct flock all{};
  all.l_type = F_UNLCK;
  all.l_whence = SEEK_SET;
  if (whole_)
    ::flock(descriptor_.get(), LOCK_UN);
  else
    lock_range(descriptor_.get(), all);
}

LockDescription::Answer LockDescription::set(const FileLock& wanted) {
  const auto range = range_of(wanted);
  if (!range) return {EINVAL};
  if (whole_) {
    const int error = ::flock(descriptor_.get(), kernel_type_of(wanted.type)->whole | LOCK_NB) == 0 ? 0 : errno;
    if (error == 0) held_->set(wanted);
    // flock(2) gives up the old lock before it requests the new one.
    if (error == EAGAIN) held_->set({});
    return {error};
  }
  const std::size_t count = held_->count_with(wanted);
  if (count > kMostRanges && count > held_->count()) return {ENOLCK};
  if (range->l_type == F_WRLCK && !read_only_ && !writes(descriptor_.get())) {
    if (const Answer answer = open_for_writing(); answer.error != 0) return answer;
  }
  const int error = lock_range(descriptor_.get(), *range);
  if (error == 0) held_->set(wanted);
  return {error};
}

int LockDescription::get(int descriptor, FileLock& lock) {
  auto range = range_of(lock);
  if (!range) return EINVAL;
  if (::fcntl(descriptor, F_OFD_GETLK, &*range) != 0) return errno;
  lock = {.offset = static_cast<std::uint64_t>(range->l_start),
          .length = static_cast<std::uint64_t>(range->l_len),
          .type = static_cast<std::uint32_t>(type_of(range->l_type)),
          .reserved = 0};
  return 0;
}

}  // namespace wherry::file
