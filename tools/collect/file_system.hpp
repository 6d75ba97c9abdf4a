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

/// Whether `flush` may not reach all that lies behind this directory's file system (FUSE, CIFS, 9P, overlay, and what
/// is not known), or the system lacks the calls to make it, or to tell what became of one file.
bool must_flush_each(int directory);

/// One of the file systems at and below the destination, as it is mounted there: neither a rename nor a flush goes
/// beyond it. All calls from any thread.
class FileSystem {
 public:
  /// `top`: the highest directory below the destination that lies on it.
  explicit FileSystem(UniqueFd top);

  /// False once an unnamed temporary file (O_TMPFILE) proved impossible here.
  [[nodiscard]] bool unnamed_files() const { return unnamed_files_.load(std::memory_order_relaxed); }
  void no_unnamed_files() { unnamed_files_.store(false, std::memory_order_relaxed); }

  /// `directory`, which lies on it, was opened. The first in which this process may store is where files wait, if it
  /// may not store in `top`.
  void offer(int directory);
  /// Made when first needed. Throws Refusal.
  Staging& staging();
  /// Removes it, while no file waits in it: what follows leaves the directory's time as it is. Directories below `top`
  /// are offered again afterwards: settled, one may be closed to this process.
  void end_staging();

  /// Everything done here before the call has reached the disk when it returns, and will survive a power failure; but
  /// see `each_file_flushed`. Threads that call at once share flushes. Returns 0 or an errno value, which may be owed
  /// to another program's files; such a one is returned once.
  int flush();
  /// Each file, and each directory that got a name, needs an fsync of its own: see must_flush_each.
  [[nodiscard]] bool each_file_flushed() const { return each_file_flushed_; }

 private:
  UniqueFd top_;
  std::atomic<bool> unnamed_files_;
  bool each_file_flushed_;
  bool top_stages_;
  std::mutex staging_mutex_;
  UniqueFd lower_;  // where files wait if not in top_; invalid until one was offered
  std::optional<Staging> staging_;

  std::mutex flush_mutex_;
  std::condition_variable flushed_;
  bool flushing_ = false;
  std::uint64_t begun_ = 0;  // flushes
  std::uint64_t ended_ = 0;
  std::uint64_t failed_ = 0;  // the last flush that did
  int error_ = 0;             // of that
};

/// The file systems in use, each once. All calls from any thread.
class FileSystems {
 public:
  /// The one that the directory open as `descriptor` lies on. Throws Refusal.
  std::shared_ptr<FileSystem> of(int descriptor);
  void end_staging();

 private:
  // Two mounts of one file system count as two: they cannot be renamed between.
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
