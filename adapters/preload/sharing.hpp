// SPDX-License-Identifier: Apache-2.0
//
// Offsets that this process holds itself, and how they become the kernel's again: before something else uses them.
#pragma once

#include <cstdint>

#include "descriptors.hpp"

namespace wherry::preload {

/// From now on the offset of this descriptor is the kernel's, and right there. For calls that use it in the kernel, and
/// for those that give it to another descriptor or process. Waits for a thread that does the same just now; keeps
/// errno.
void share_offset(int fd) noexcept;

/// The same for all descriptors. While an object of this class lives, none becomes the process's own.
class AllShared {
 public:
  AllShared() noexcept;
  ~AllShared();
  AllShared(const AllShared&) = delete;
  AllShared& operator=(const AllShared&) = delete;

 private:
  bool counted_;
};

/// Its two ends, where they cannot stand in one function.
void all_shared_from_now() noexcept;
void all_shared_no_more() noexcept;

/// Descriptors of several tables, or used by others than calls of this process: from now on all are the kernel's.
void share_all_for_good() noexcept;

/// A descriptor was opened here, to be read only.
void opened_alone(int fd) noexcept;

/// From mode `own` to `user`, or to `shared` where the offset is too far; nothing where a call uses the kernel's offset
/// just now.
void own_offset(int fd, Entry& entry, State before) noexcept;

/// In a forked child, while it has an AllShared.
void repair_sharing_after_fork() noexcept;

}  // namespace wherry::preload
