// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "file/mount/hosts.hpp"
#include "file/mount/keeping.hpp"
#include "file/mount/nodes.hpp"
#include "file/mount/open_file.hpp"
#include "file/server/server_handles.hpp"
#include "file/wire/held_locks.hpp"
#include "file/wire/lock_description.hpp"

namespace wherry::file::mount {

/// A lock request of a program.
struct LockRequest {
  std::uint64_t owner = 0;  ///< the kernel's number of a process's file table, or of an open file description
  bool whole = false;       ///< flock(2)
  layout::FileLock lock{};
  pid_t process = 0;  ///< of the program; in an answer 0 if it is not a program of this mount
  /// A process waits for it. EDEADLK: the wait would close a cycle of waiting programs, of any mount.
  bool waits = false;
};

/// The locks of a mount's programs. The kernel itself keeps none. An owner that has requested a lock on a file has a
/// lock description until it closes the file: in this process if the file is lent, otherwise at the server.
///
/// The owner of a POSIX lock is a process, with all of its descriptors of the file: `drop` ends its locks. The owner of
/// an open file description's lock, or of a flock(2) lock, is one open file: `release` ends its locks.
///
/// Functions return 0 or an errno value. Thread-safe. Blocks as Host does, but never waits for a lock.
class Locks {
 public:
  struct Answer {
    int error = 0;
    bool frees = false;  ///< a lock was given up or weakened
  };

  explicit Locks(const Keeping& keeping = {}) : keeping_(keeping) {}
  /// Takes over what an earlier daemon has left. Must be the first call.
  /// @param open  returns an open file by its number, or null
  void restore(const KeptSnapshot& left, bool read_only, const std::function<OpenFile*(std::uint64_t)>& open);
  /// Whether an earlier daemon had locks on the file at the server. They were lost with its connection.
  static bool were_lost(const KeptSnapshot& left, KeptDescriptors& kept, std::uint64_t open);

  /// EAGAIN: another owner's lock conflicts. EDEADLK: see LockRequest::waits. ENOLCK: no descriptor is left for the
  /// owner, or the file may not be opened again. ESTALE: the owner's locks were lost with the server; until the owner
  /// closes the file.
  Answer set(NodeId node, const OpenFile& by, const LockRequest& wanted);
  /// Replaces `lock` by one that conflicts with it; of type `none` if there is none.
  int get(NodeId node, const OpenFile& by, LockRequest& lock);
  /// Records which lock an owner waits for; `end_wait` removes the record. EDEADLK: the wait would close a cycle of
  /// owners that wait for each other; then nothing is recorded. Only owners of this mount are known.
  int begin_wait(const void* id, NodeId node, const LockRequest& wanted);
  void end_wait(const void* id);
  /// Call when a program no longer waits for a lock that it has not got. Tells the server, if that knows of it.
  void give_up(NodeId node, const LockRequest& wanted);
  /// Whether a recorded wait is in a cycle by now. If so, removes the record.
  bool is_deadlocked(const void* id);

  /// Call when a process has closed a descriptor of the file. Returns whether it had locks on it.
  bool drop(NodeId node, std::uint64_t process);
  /// Call when an open file is closed for good. Returns whether locks ended with it.
  bool release(NodeId node, const OpenFile& by);

 private:
  struct Key {
    std::uint64_t owner;
    bool whole;
    auto operator<=>(const Key&) const = default;
  };
  struct Owner {
    std::mutex mutex;                        ///< serializes calls on `own` and `file`
    std::shared_ptr<LockDescription> own{};  ///< if the file is lent
    std::unique_ptr<Hosts::File> file{};     ///< otherwise: the owner at the server
    std::shared_ptr<HeldLocks> held = std::make_shared<HeldLocks>();
    std::uint64_t number = 0;
    bool lost = false;                    ///< its locks were at the server, and are lost
    pid_t process = 0;                    ///< process of its last call
    std::vector<const OpenFile*> used{};  ///< guarded by Locks::mutex_
  };
  using Owners = std::map<Key, std::shared_ptr<Owner>>;
  struct Waiting {
    NodeId node;
    std::uint64_t owner;
    layout::FileLock lock;
  };

  std::shared_ptr<Owner> find(NodeId node, const Key& key);
  std::shared_ptr<Owner> find_or_add(NodeId node, const Key& key, const OpenFile& by, pid_t process);
  void describe(Owner& owner, const LentFile& lent, bool whole, bool read_only, bool is_own);
  void take_up(Owner& owner, std::unique_ptr<LockDescription> made);
  void note_user(const Owner& owner, NodeId node, const Key& key, const OpenFile& by);
  void note_end(const Owner& owner);
  int open(Owner& owner, const OpenFile& by, const LockRequest& wanted);
  int set(Owner& owner, const OpenFile& by, const LockRequest& wanted);
  [[nodiscard]] std::set<std::uint64_t> conflicting_owners(const Waiting& wait) const;
  [[nodiscard]] bool closes_cycle(const Waiting& wait) const;
  [[nodiscard]] pid_t holder(NodeId node, const Key& asking, const layout::FileLock& lock);

  Keeping keeping_;
  HandleBudget budget_ = HandleBudget::for_one();
  std::mutex mutex_;
  std::unordered_map<NodeId, Owners> nodes_;
  std::map<const void*, Waiting> waiting_;
  std::uint64_t last_ = 0;  ///< number of the newest owner
};

}  // namespace wherry::file::mount
