// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "file/wire/held_locks.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// Which processes of all clients wait for whose locks on ranges (fcntl). The server's kernel does not detect that
/// processes wait for each other: their locks are those of open file descriptions. Thread-safe. Never blocks.
class LockGraph {
 public:
  /// A process of a client.
  struct Process {
    std::uint64_t client = 0;
    std::uint64_t number = 0;
    auto operator<=>(const Process&) const = default;
  };

  /// The locks of one process on one file, from its construction to its end.
  class Member {
   public:
    /// @param held  what it has locked
    Member(LockGraph& graph, const Process& process, const layout::FileIdentity& file,
           std::shared_ptr<const HeldLocks> held);
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    ~Member();

    /// Records that the process waits for this lock. False: that would close a cycle of waiting processes, and nothing
    /// is recorded.
    [[nodiscard]] bool wait(const layout::FileLock& lock);
    void end_wait(const layout::FileLock& lock);

   private:
    friend class LockGraph;
    LockGraph& graph_;
    Process process_;
    layout::FileIdentity file_;
    std::shared_ptr<const HeldLocks> held_;
    std::vector<layout::FileLock> waits_;  ///< guarded by LockGraph::mutex_
  };

 private:
  [[nodiscard]] bool closes_cycle(const Member& member, const layout::FileLock& lock) const;

  std::mutex mutex_;
  std::set<const Member*> members_;
};

}  // namespace wherry::file
