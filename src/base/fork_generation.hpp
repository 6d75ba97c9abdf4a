// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wherry {

/// The number of this process, never 0: another than any that an ancestor had when it forked, or a descendant gets
/// after this call. From any thread; costs a load. The address space counts: a child of vfork, which runs in its
/// parent's, has its parent's number.
std::uint64_t fork_generation() noexcept;

/// The process in which an object was made. In a forked child's copy of the object, whatever other processes share is
/// the parent's: a destructor or a release there stores nothing in shared memory, and leaves kernel objects alone that
/// both processes hold.
class Origin {
 public:
  [[nodiscard]] bool inherited() const noexcept { return fork_generation() != generation_; }

 private:
  std::uint64_t generation_ = fork_generation();
};

}  // namespace wherry
