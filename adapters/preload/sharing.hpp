// SPDX-License-Identifier: Apache-2.0
//
// Offsets that this process keeps itself, and how they are returned to the kernel before something else uses them.
#pragma once

#include <cstdint>

#include "descriptors.hpp"

namespace wherry::preload {

/// Returns the offset of this descriptor to the kernel. To be called before calls that use the offset in the kernel, or
/// give it to another descriptor or process. Waits for a thread that is doing the same. Keeps errno.
void share_offset(int fd) noexcept;

/// Ends the ring of a descriptor, and returns its offset to the kernel. The descriptor may have another ring later.
void return_offset(int fd) noexcept;

/// To be called before a call of the kernel's that reads the file, which uses the size that the kernel knows.
inline void before_kernel_read(int fd, bool at_own_offset) noexcept {
  if (at_own_offset)
    share_offset(fd);
  else
    return_offset(fd);
}

/// To be called before a file is mapped. A descriptor that also writes has no ring any more: a page behind the end that
/// the kernel knows cannot be read.
void before_mapping(int fd) noexcept;

/// As share_offset() for all descriptors. While an object of this class exists, the process keeps no offset itself.
class AllShared {
 public:
  AllShared() noexcept;
  ~AllShared();
  AllShared(const AllShared&) = delete;
  AllShared& operator=(const AllShared&) = delete;

 private:
  bool counted_;
};

/// The constructor and the destructor of AllShared, for code that cannot have both in one function.
void all_shared_from_now() noexcept;
void all_shared_no_more() noexcept;
/// Whether a thread is in such a call.
bool is_sharing_all() noexcept;

/// Leaves all descriptors to the kernel from now on: there are several tables of them, or others use them than calls of
/// this process.
void share_all_for_good() noexcept;

/// To be called when a descriptor was opened here for this access, and nothing else uses its offset.
void opened_alone(int fd, Access access) noexcept;

/// Changes mode `own` to `user`, or to `shared` if the offset is too large. Does nothing while a call uses the kernel's
/// offset.
void own_offset(int fd, Entry& entry, State before) noexcept;

/// To be called in a forked child, within an AllShared.
void repair_sharing_after_fork() noexcept;

}  // namespace wherry::preload
