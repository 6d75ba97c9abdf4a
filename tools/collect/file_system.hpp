// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/unique_fd.hpp"
#include "collect/staging.hpp"

namespace wherry::tools {

/// Whether each file needs its own fsync. True if a flush may not reach the storage behind this directory's file system
/// (FUSE, CIFS, 9P, overlay, and unknown ones). Also true if the system lacks syncfs or sync_file_range.
bool must_flush_each(int directory);

/// One mounted file system at or below the destination. Renames and flushes do not cross its borders. Threads: any call
/// from any thread.
class FileSystem {
 public:
  /// `top`: the highest directory of this file system at or below the destination.
  explicit FileSystem(UniqueFd top);

  /// False after an attempt to create an unnamed temporary file (O_TMPFILE) failed here.
  [[nodiscard]] bool unnamed_files() const { return unnamed_files_.load(std::memory_order_relaxed); }
  void no_unnamed_files() { unnamed_files_.store(false, std::memory_order_relaxed); }

  /// Reports an opened directory of this file system. If this process may not store in `top`, the staging directory is
  /// made in the first reported directory where it may.
  void offer(int directory);
  /// The staging directory, made on first use. Throws Refusal.
  Staging& staging();
  /// Removes the staging directory, in which no file may wait. Later calls then do not change its parent's time.
  /// Directories below `top` are reported again afterwards, because settling may have closed one to this process.
  void end_staging();

  /// Flushes the file system: all earlier changes then survive a power failure, except as `each_file_flushed` says.
  /// Concurrent calls share flushes. Returns 0 or an errno value. The error may concern another program's files; such
  /// an error is returned once.
  int flush();
  /// True if each file, and each directory with a new name, needs its own fsync: see must_flush_each.
  [[nodiscard]] bool each_file_flushed() const { return each_file_flushed_; }

 private:
  UniqueFd top_;
  std::atomic<bool> unnamed_files_;
  bool each_file_flushed_;
  bool top_stages_;
  std::mutex staging_mutex_;
  UniqueFd lower_;  // where files are staged if not in top_; invalid until one was offered
  std::optional<Staging> staging_;

  std::mutex flush_mutex_;
  std::condition_variable flushed_;
  bool flushing_ = false;
  std::uint64_t begun_ = 0;  // flushes
  std::uint64_t ended_ = 0;
  std::uint64_t failed_ = 0;  // the number of the last flush that failed
  int error_ = 0;             // of that flush
};

/// The file systems in use, each once. Threads: any call from any thread.
class FileSystems {
 public:
  /// The file system of the directory open as `descriptor`. Throws Refusal.
  std::shared_ptr<FileSystem> of(int descriptor);
  void end_staging();

 private:
  // Two mounts of one file system are two, because rename does not work between them.
  struct Mount {
    std::uint64_t device;
    std::uint64_t mount;
    auto operator<=>(const Mount&) const = default;
  };
  static Mount mount_of(int descriptor);

  std::mutex mutex_;
  std::map<Mount, std::weak_ptr<FileSystem>> known_;
};

}  // namespace wherry::tools
