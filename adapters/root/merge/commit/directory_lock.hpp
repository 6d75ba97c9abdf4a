// SPDX-License-Identifier: Apache-2.0
// Excludes other mergers while an output's files are created or renamed in a directory.
#pragma once

#include <mutex>
#include <string>

#include "base/unique_fd.hpp"

namespace wherry::merge {

/// Held for short times. While one exists, no other process has one for the same directory, and no other thread of this
/// process has any. It is needed because two outputs in a directory may have the same hidden name (journal.hpp): files
/// are given names, and their names are checked, only under this lock. Blocks. On a file system that cannot lock
/// directories it excludes only the threads of this process.
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
