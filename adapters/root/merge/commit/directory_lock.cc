// SPDX-License-Identifier: Apache-2.0
#include "adapters/root/merge/commit/directory_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <cerrno>
#include <filesystem>

namespace wherry::merge {

namespace {

std::unique_lock<std::mutex> among_threads() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

int open_directory_of(const std::string& output) {
  return ::open(std::filesystem::absolute(output).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

}  // namespace

DirectoryLock::DirectoryLock(const std::string& output)
    : threads_(among_threads()), directory_(open_directory_of(output)) {
  while (directory_.valid() && ::flock(directory_.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

// Unlocks explicitly. Closing the descriptor is not enough, because a child forked meanwhile also has it.
DirectoryLock::~DirectoryLock() {
  if (directory_.valid()) ::flock(directory_.get(), LOCK_UN);
}

}  // namespace wherry::merge
