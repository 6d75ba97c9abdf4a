// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wherry {

/// Returns a number of this process, never 0. It differs from the numbers that ancestors had when they forked, and from
/// those that descendants get after this call. From any thread; costs a load. The number belongs to the address space:
/// a child of vfork, which runs in its parent's, has its parent's number.
std::uint64_t fork_generation() noexcept;

/// Remembers the process in which an object was made. In a forked child's copy of the object, shared memory and kernel
/// objects belong to the parent. So a destructor or a release there must store nothing in shared memory, and must leave
/// kernel objects alone that both processes hold.
class Origin {
 public:
  [[nodiscard]] bool inherited() const noexcept { return fork_generation() != generation_; }

 private:
  std::uint64_t generation_ = fork_generation();
};

}  // namespace wherry
