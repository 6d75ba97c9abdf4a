// SPDX-License-Identifier: Apache-2.0
#include "collect/file_system.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <utility>

#include "collect/refusal.hpp"

namespace wherry::tools {
namespace {

bool is_served_by_a_program(int descriptor) {
  struct statfs status{};
  if (::fstatfs(descriptor, &status) != 0) return true;
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case FUSE_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case V9FS_MAGIC:
      return true;
    default:
      return false;
  }
}

}  // namespace

FileSystem::FileSystem(UniqueFd top)
    : top_(std::move(top)),
      // An unnamed file gets its name through /proc.
      unnamed_files_(::access("/proc/self/fd", X_OK) == 0),
      each_file_flushed_(is_served_by_a_program(top_.get())) {
  Staging::remove_stale(top_.get());
}

Staging& FileSystem::staging() {
  const std::lock_guard lock(staging_mutex_);
  if (!staging_) staging_.emplace(top_.get());
  return *staging_;
}

void FileSystem::end_staging() {
  const std::lock_guard lock(staging_mutex_);
  staging_.reset();
}

int FileSystem::flush() {
  std::unique_lock lock(flush_mutex_);
  // One that is under way may have passed by what the caller did since.
  const std::uint64_t needed = begun_ + 1;
  while (ended_ < needed) {
    if (flushing_) {
      flushed_.wait(lock);
      continue;
    }
    flushing_ = true;
    const std::uint64_t number = ++begun_;
    lock.unlock();
    const int error = ::syncfs(top_.get()) == 0 ? 0 : errno;
    lock.lock();
    flushing_ = false;
    ended_ = number;
    if (error != 0) {
      failed_ = number;
      error_ = error;
    }
    flushed_.notify_all();
  }
  return failed_ >= needed ? error_ : 0;
}

std::shared_ptr<FileSystem> FileSystems::of(int descriptor) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<FileSystem>& known = known_[mount_of(descriptor)];
  if (auto found = known.lock()) return found;
  UniqueFd top(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!top.valid()) throw Refusal(errno);
  auto made = std::make_shared<FileSystem>(std::move(top));
  known = made;
  return made;
}

void FileSystems::end_staging() {
  const std::lock_guard lock(mutex_);
  for (const auto& [mount, known] : known_) {
    if (const auto file_system = known.lock()) file_system->end_staging();
  }
}

FileSystems::Mount FileSystems::mount_of(int descriptor) {
  struct statx status{};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0) throw Refusal(errno);
  // Before Linux 5.8 the number of the mount is not told.
  const std::uint64_t mount = (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0;
  return {makedev(status.stx_dev_major, status.stx_dev_minor), mount};
}

}  // namespace wherry::tools
