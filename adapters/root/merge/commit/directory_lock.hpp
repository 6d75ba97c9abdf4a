// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "base/unique_fd.hpp"

namespace wherry::merge {

/// While it lives, no other thread or process has one of the same directory: two outputs there may have one hidden name
/// (journal.hpp), so names are given and looked at only under it. Blocks; for moments only. On a file system without
/// locks of directories it excludes the threads of this process.
class DirectoryLock {
 public:
  /// Locks the directory that this output is in.
  explicit DirectoryLock(const std::string& output);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

 private:
  std::unique_lock<std::mutex> threads_;
  UniqueFd directory_;
};

}  // namespace wherry::merge
