// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "file/mount/lock_waits.hpp"
#include "file/mount/locks.hpp"

namespace wherry::file::mount {

/// The locks of a mount, the waits for locks, and granted locks that are not reported yet. Giving up a lock wakes
/// the waits for its file. Functions and threads as in Locks and LockWaits.
class LockService {
 public:
  explicit LockService(const Keeping& keeping = {}) : locks_(keeping) {}
  [[nodiscard]] Locks& locks() { return locks_; }
  /// Starts the threads. Throws std::system_error.
  /// @param device  the kernel's device
  void start(int device);
  /// Answers all waiting programs. Later calls do not wait.
  void stop();

  int set(NodeId node, const OpenFile& by, const LockRequest& wanted);
  int get(NodeId node, const OpenFile& by, LockRequest& lock) { return locks_.get(node, by, lock); }
  void drop(NodeId node, std::uint64_t process);
  void release(NodeId node, const OpenFile& by);

  [[nodiscard]] LockWaits& waits() { return waits_; }
  /// Granted locks, reported to the program only after the kernel has dropped its cached pages of the file. If the
  /// daemon is killed meanwhile, this thread may wait in the kernel until the next daemon has answered a read.
  /// Therefore the thread has no descriptor but the device. Otherwise the server would consider this process alive, and
  /// not serve the next one.
  [[nodiscard]] LockWaits& grants() { return grants_; }

 private:
  Locks locks_;
  LockWaits waits_;
  LockWaits grants_;
};

}  // namespace wherry::file::mount
