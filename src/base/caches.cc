// SPDX-License-Identifier: Apache-2.0
#include "base/caches.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <system_error>

namespace wherry {
namespace {

namespace fs = std::filesystem;

template <class Value>
Value first_in(const fs::path& file) {
  Value value{};
  std::ifstream(file) >> value;
  return value;
}

/// "48K", "32768K", "1M".
std::uint64_t size_in(const fs::path& file) {
  std::uint64_t number = 0;
  char unit = ' ';
  std::ifstream(file) >> number >> unit;
  return number << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
}

}  // namespace

std::vector<Cache> caches_in(const fs::path& folder) {
  std::vector<Cache> caches;
  std::error_code none;
  for (const fs::directory_entry& one : fs::directory_iterator(folder, none)) {
    const auto type = first_in<std::string>(one.path() / "type");
    const int level = first_in<int>(one.path() / "level");
    if (level == 0 || type == "Instruction") continue;
    caches.push_back({.level = level,
                      .unified = type != "Data",
                      .bytes = size_in(one.path() / "size"),
                      .cores = first_in<std::string>(one.path() / "shared_cpu_list")});
  }
  std::ranges::sort(caches, {}, &Cache::level);
  return caches;
}

int first_core() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  int core = 0;
  while (core < CPU_SETSIZE - 1 && !CPU_ISSET(static_cast<unsigned>(core), &allowed)) ++core;
  return core;
}

}  // namespace wherry
