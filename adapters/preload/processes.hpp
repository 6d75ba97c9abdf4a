// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wherry::preload {

/// To be called before a clone with these flags. Two processes may then share memory but not descriptors or signal
/// actions, or descriptors but not memory. The state here would be true for only one of them.
void prepare_clone(std::uint64_t flags) noexcept;

/// To be called in the child of a fork, before anything else and within an AllShared.
void repair_after_fork() noexcept;

}  // namespace wherry::preload
