// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wherry {

/// How many forks lie between this process and the ancestor that first asked. Who remembers it knows whether it has
/// been inherited by a forked child. From any thread; costs a load.
std::uint64_t fork_generation() noexcept;

}  // namespace wherry
