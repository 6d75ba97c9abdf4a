// SPDX-License-Identifier: Apache-2.0
#include "collect/file_system.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <utility>

#include "collect/permissions.hpp"
#include "collect/refusal.hpp"

namespace wherry::tools {
namespace {

// Whether syncfs flushes all data and names stored here, and sync_file_range reports a file's write errors. False for
// file systems that have another program or file system behind them, such as FUSE, CIFS, 9P and overlay.
bool is_syncfs_reliable(int directory) {
  struct statfs status{};
  if (::fstatfs(directory, &status) != 0) return false;
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case EXT4_SUPER_MAGIC:  // and ext2, ext3
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case NFS_SUPER_MAGIC:
      return true;
    default:
      return false;
  }
}

// Sandboxes, and kernels that imitate Linux, may lack both calls. Both are tried without effect: a directory has no
// data to flush, and -1 is no descriptor.
bool has_sync_calls(int directory) {
  return ::sync_file_range(directory, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) == 0 && ::syncfs(-1) != 0 && errno == EBADF;
}

}  // namespace

bool must_flush_each(int directory) { return !is_syncfs_reliable(directory) || !has_sync_calls(directory); }

FileSystem::FileSystem(UniqueFd top)
    : top_(std::move(top)),
      // An unnamed file gets its name through /proc.
      unnamed_files_(::access("/proc/self/fd", X_OK) == 0),
      each_file_flushed_(must_flush_each(top_.get())),
      top_stages_(may_store(top_.get())) {
  Staging::remove_stale(top_.get());
}

void FileSystem::offer(int directory) {
  if (top_stages_) return;
  const std::lock_guard lock(staging_mutex_);
  if (lower_.valid() || !may_store(directory)) return;
  lower_.reset(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (lower_.valid()) Staging::remove_stale(lower_.get());
}

Staging& FileSystem::staging() {
  const std::lock_guard lock(staging_mutex_);
  if (!staging_) staging_.emplace(lower_.valid() ? lower_.get() : top_.get());
  return *staging_;
}

void FileSystem::end_staging() {
  const std::lock_guard lock(staging_mutex_);
  staging_.reset();
  lower_.reset();
}

int FileSystem::flush() {
  std::unique_lock lock(flush_mutex_);
  // A flush that has begun may have missed the caller's last changes.
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
  if (auto found = known.lock()) {
    found->offer(descriptor);
    return found;
  }
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
  // Before Linux 5.8 statx does not return the mount number.
  const std::uint64_t mount = (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0;
  return {makedev(status.stx_dev_major, status.stx_dev_minor), mount};
}

}  // namespace wherry::tools
