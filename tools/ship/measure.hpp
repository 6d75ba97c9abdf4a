// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wherry::tools {

struct Measure {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Estimates the number of files and bytes below `paths`, for a progress bar. Silently skips what cannot be read.
Measure measure(const std::vector<std::string>& paths, bool recursive);

}  // namespace wherry::tools
