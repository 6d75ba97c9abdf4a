// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wherry::preload {

/// Before a clone with these flags. Where it leaves one memory with two tables of descriptors or of actions of signals,
/// or one table with two memories, what is known here would hold for one of the processes only.
void prepare_clone(std::uint64_t flags) noexcept;

/// In the child of a fork, before anything else, and while it has an AllShared.
void repair_after_fork() noexcept;

}  // namespace wherry::preload
