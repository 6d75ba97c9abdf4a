// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/memory_use.hpp"

#include <unistd.h>

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

std::uint64_t tcp_memory() {
  // TCP: inuse 5 orphan 0 tw 2 alloc 7 mem 1
  std::ifstream words("/proc/net/sockstat");
  bool tcp = false;
  for (std::string word; words >> word;) {
    if (word.ends_with(':')) tcp = word == "TCP:";
    if (!tcp || word != "mem") continue;
    std::uint64_t pages = 0;
    words >> pages;
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  return 0;
}

}  // namespace wherry::bench
