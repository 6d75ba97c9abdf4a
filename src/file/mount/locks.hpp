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

/// A lock as a program asks for it.
struct LockRequest {
  std::uint64_t owner = 0;  ///< the kernel's number of a process's table of files, or of an open file description
  bool whole = false;       ///< of flock(2)
  layout::FileLock lock{};
  pid_t process = 0;  ///< of the program; of an answer 0 if it is not one of this mount
};

/// The locks of a mount's programs. The kernel keeps none itself. An owner that has asked for a lock on a file is an
/// owner of locks until it closes the file: of this process where the file is lent, and at the server otherwise.
///
/// The owner of a POSIX lock is a process, whichever of its descriptors of the file it uses: `drop` ends all of them.
/// That of an open file description's lock, and of flock(2), uses one open file only, and ends with it: `release`.
///
/// Functions return 0 or an errno value. Threads: any. Blocks as Host does; no lock is waited for.
class Locks {
 public:
  struct Answer {
    int error = 0;
    bool frees = false;  ///< a lock was given up, or made weaker
  };

  explicit Locks(const Keeping& keeping = {}) : keeping_(keeping) {}
  /// Takes over what an earlier daemon has left. Before any other call.
  /// @param open  gives an open file by its number, or null
  void restore(const KeptSnapshot& left, bool read_only, const std::function<OpenFile*(std::uint64_t)>& open);
  /// Whether an earlier daemon had locks on the file at the server, which are lost with its connection.
  static bool were_lost(const KeptSnapshot& left, KeptDescriptors& kept, std::uint64_t open);

  /// EAGAIN where another owner is in the way; ENOLCK where no descriptor is left for the owner, or the file may not be
  /// opened again; ESTALE from when the owner's locks were lost with the server until it closes the file.
  Answer set(NodeId node, const OpenFile& by, const LockRequest& wanted);
  /// Replaces `lock` by what is in its way: of type `none` if nothing is.
  int get(NodeId node, const OpenFile& by, LockRequest& lock);
  /// Notes which lock an owner waits for. `is_deadlocked` looks at these waits, `end_wait` removes one. EDEADLK: the
  /// wait would close a circle of owners that wait for each other; nothing is noted. Only owners of this mount are
  /// known.
  int begin_wait(const void* id, NodeId node, const LockRequest& wanted);
  void end_wait(const void* id);
  /// Whether that is so by now. The wait is noted no longer then.
  bool is_deadlocked(const void* id);

  /// A process has closed a descriptor of the file. Returns whether it had locks on it.
  bool drop(NodeId node, std::uint64_t process);
  /// An open file is closed for good. Returns whether locks ended with it.
  bool release(NodeId node, const OpenFile& by);

 private:
  struct Key {
    std::uint64_t owner;
    bool whole;
    auto operator<=>(const Key&) const = default;
  };
  struct Owner {
    std::mutex mutex;                        ///< of the two: their calls go one after the other
    std::shared_ptr<LockDescription> own{};  ///< of a file that is lent
    std::unique_ptr<Hosts::File> file{};     ///< of others: the server's
    std::shared_ptr<HeldLocks> held = std::make_shared<HeldLocks>();
    std::uint64_t number = 0;
    bool lost = false;                    ///< its locks were at the server
    pid_t process = 0;                    ///< of its last call
    std::vector<const OpenFile*> used{};  ///< by Locks::mutex_
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
  int open(Owner& owner, const OpenFile& by, bool whole);
  int set(Owner& owner, const OpenFile& by, const LockRequest& wanted);
  [[nodiscard]] std::set<std::uint64_t> owners_before(const Waiting& wait) const;
  [[nodiscard]] bool closes_circle(const Waiting& wait) const;
  [[nodiscard]] pid_t holder(NodeId node, const Key& asking, const layout::FileLock& lock);

  Keeping keeping_;
  HandleBudget budget_ = HandleBudget::for_one();
  std::mutex mutex_;
  std::unordered_map<NodeId, Owners> nodes_;
  std::map<const void*, Waiting> waiting_;
  std::uint64_t last_ = 0;  ///< number of an owner
};

}  // namespace wherry::file::mount
