// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "file/mount/lock_waits.hpp"
#include "file/mount/locks.hpp"

namespace wherry::file::mount {

/// The locks of a mount, the programs that wait for them, and those that are to be told of one. What is given up wakes
/// the waits for that file. Functions and threads as of Locks and LockWaits.
class LockService {
 public:
  explicit LockService(const Keeping& keeping = {}) : locks_(keeping) {}
  [[nodiscard]] Locks& locks() { return locks_; }
  /// Starts the threads. Throws std::system_error.
  /// @param device  the kernel's
  void start(int device);
  /// Answers what waits. Calls go on without waits.
  void stop();

  int set(NodeId node, const OpenFile& by, const LockRequest& wanted);
  int get(NodeId node, const OpenFile& by, LockRequest& lock) { return locks_.get(node, by, lock); }
  void drop(NodeId node, std::uint64_t process);
  void release(NodeId node, const OpenFile& by);

  [[nodiscard]] LockWaits& waits() { return waits_; }
  /// Locks that are there, and of which the program is told once the kernel has dropped what it keeps of the file. If
  /// the daemon is killed meanwhile the thread may wait in the kernel until the next one has answered a read. So it has
  /// no descriptor but the device, or the server would take this process to be alive, and keep the next one waiting.
  [[nodiscard]] LockWaits& grants() { return grants_; }

 private:
  Locks locks_;
  LockWaits waits_;
  LockWaits grants_;
};

}  // namespace wherry::file::mount
