// SPDX-License-Identifier: Apache-2.0
// Which pages of private memory have any content. May include: base.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace wherry::fabric {

/// The parts of private memory without a file, whole pages, that have been touched: the rest has no pages yet and is
/// zero. All of it where the kernel does not tell.
std::vector<std::span<const std::byte>> touched_parts(std::span<const std::byte> memory);

}  // namespace wherry::fabric
