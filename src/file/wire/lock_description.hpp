// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/unique_fd.hpp"
#include "file/wire/held_locks.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// A lock owner on a file of this machine. It has its own open file description, so that the kernel separates it from
/// other owners and from the programs of the machine. Its locks end with the object.
///
/// One thread at a time. No call waits.
class LockDescription {
 public:
  /// Errors of `set`. EAGAIN: another owner's lock conflicts, or a lease (`leased`; then nothing has changed yet).
  /// EINVAL: no such lock. ENOLCK: too many locks, or the file can no longer be opened for writing.
  struct Answer {
    int error = 0;
    bool leased = false;
  };

  /// Whose open file description `descriptor` is. A description of one owner may be reused for its flock(2) locks.
  enum class Descriptor : bool { of_this_owner_alone, of_others_too };
  /// For locks on the file of `descriptor`. Null, and errno, if the file cannot be opened again. A description that is
  /// open for writing takes read and write locks, since an owner may have the file open several times. A description
  /// for flock(2) takes any lock, however it is open.
  /// @param whole  for flock(2), otherwise for ranges
  /// @param held  updated with every lock; belongs to this owner alone
  static std::unique_ptr<LockDescription> open(int descriptor, Descriptor use, bool whole, bool read_only,
                                               std::shared_ptr<HeldLocks> held);

  /// Continues with the description of an earlier process. A duplicate of it was kept, and it has the locks of `held`.
  static std::unique_ptr<LockDescription> resume(UniqueFd descriptor, bool whole, bool read_only,
                                                 std::shared_ptr<HeldLocks> held);
  LockDescription(const LockDescription&) = delete;
  LockDescription& operator=(const LockDescription&) = delete;
  ~LockDescription();
  /// From now on another process keeps duplicates: of the current description, and of a later one before that one has
  /// locks which this one has not. The locks still end with this object.
  /// @param keep  takes a descriptor; called now, and for a later description
  void share(std::function<void(int)> keep);

  [[nodiscard]] bool is_whole() const { return whole_; }
  Answer set(const layout::FileLock& wanted);
  /// A lock that conflicts with `lock`, except this owner's; of type `none` if there is none.
  int get(layout::FileLock& lock) const { return get(descriptor_.get(), lock); }
  /// As above for a descriptor without locks of its own: every lock conflicts.
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
