// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstdint>

namespace wherry::preload {

/// Whether a clone with these flags leaves two processes with one memory and two tables of descriptors, or the other
/// way round: what is known here of descriptors then holds for one of them only.
constexpr bool leaves_half_shared(std::uint64_t flags) {
  return ((flags & CLONE_VM) != 0) != ((flags & CLONE_FILES) != 0);
}

/// In the child of a fork, before anything else, and while it has an AllShared.
void repair_after_fork() noexcept;

}  // namespace wherry::preload
