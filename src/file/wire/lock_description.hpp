// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/unique_fd.hpp"
#include "file/wire/held_locks.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// An owner of locks on a file of this machine: an open file description of its own, so that the kernel keeps it apart
/// from other owners, and from the programs of the machine. Its locks end with it.
///
/// Threads: one at a time. No call waits.
class LockDescription {
 public:
  /// Errors of `set`: EAGAIN, and another owner is in the way, or a lease (then nothing has happened yet); EINVAL: no
  /// such lock; ENOLCK: too many, or the file can no longer be opened for writing.
  struct Answer {
    int error = 0;
    bool leased = false;
  };

  /// Whose open file description a descriptor is: that of one owner may have its flock(2).
  enum class Descriptor : bool { of_this_owner_alone, of_others_too };
  /// For locks on the file of `descriptor`; null, and errno, where that cannot be opened again. One that is open for
  /// writing takes read and write locks, since an owner may have the file open several times. One for the whole file
  /// takes any lock, however it is open.
  /// @param whole  for flock(2), otherwise for ranges
  /// @param held  is kept up to date, and is of this owner alone
  static std::unique_ptr<LockDescription> open(int descriptor, Descriptor use, bool whole, bool read_only,
                                               std::shared_ptr<HeldLocks> held);

  /// Goes on with the description of an earlier process, of which a duplicate was kept, and that has the locks of
  /// `held`.
  static std::unique_ptr<LockDescription> resume(UniqueFd descriptor, bool whole, bool read_only,
                                                 std::shared_ptr<HeldLocks> held);
  LockDescription(const LockDescription&) = delete;
  LockDescription& operator=(const LockDescription&) = delete;
  ~LockDescription();
  /// From now on another process keeps duplicates: of the description that there is, and of a later one before that has
  /// locks which this one has not. Locks end with this all the same.
  /// @param keep  takes a descriptor
  void share(std::function<void(int)> keep);

  [[nodiscard]] bool is_whole() const { return whole_; }
  Answer set(const layout::FileLock& wanted);
  /// What is in the way of a lock, if not this owner's: of type `none` if nothing is.
  int get(layout::FileLock& lock) const { return get(descriptor_.get(), lock); }
  /// The same for what has no locks: every lock is in its way.
  static int get(int descriptor, layout::FileLock& lock);

 private:
  LockDescription(UniqueFd descriptor, bool whole, bool read_only, std::shared_ptr<HeldLocks> held)
      : descriptor_(std::move(descriptor)), whole_(whole), read_only_(read_only), held_(std::move(held)) {}
  Answer open_for_writing();
  void give_up_all() const;

  UniqueFd descriptor_;
  bool whole_;
  bool read_only_;
  std::shared_ptr<HeldLocks> held_;
  std::function<void(int)> keep_{};
};

}  // namespace wherry::file
