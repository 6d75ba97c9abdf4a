// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/memory_use.hpp"

#include <unistd.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

namespace wherry::bench {

namespace {

/// Adds up the lines of /proc/self/smaps_rollup with these names.
std::uint64_t sum_of_lines(std::initializer_list<std::string_view> names) {
  std::uint64_t kibibytes = 0;
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string line; std::getline(lines, line);) {
    for (const std::string_view name : names) {
      if (line.starts_with(name)) kibibytes += std::stoull(line.substr(name.size()));
    }
  }
  return kibibytes * 1024;
}

}  // namespace

std::uint64_t proportional_memory() { return sum_of_lines({"Pss:"}); }
std::uint64_t proportional_data() { return sum_of_lines({"Pss_Anon:", "Pss_Shmem:"}); }

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
