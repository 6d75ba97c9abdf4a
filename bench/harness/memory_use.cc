// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/memory_use.hpp"

#include <fstream>
#include <string>

namespace wherry::bench {

std::uint64_t proportional_memory() {
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Pss:")) return std::stoull(line.substr(4)) * 1024;
  }
  return 0;
}

}  // namespace wherry::bench
