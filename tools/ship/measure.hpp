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

/// How much there is below `paths`, roughly: for a progress bar. What cannot be read is passed over in silence.
Measure measure(const std::vector<std::string>& paths, bool recursive);

}  // namespace wherry::tools
