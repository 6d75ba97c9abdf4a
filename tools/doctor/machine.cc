// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/cgroup.hpp"
#include "base/readable.hpp"
#include "doctor/check.hpp"

namespace wherry::tools::doctor {
namespace {

constexpr rlim_t kDescriptorsPerConnection = 4;  // two sockets, and an epoll set for the bell of each
constexpr rlim_t kDescriptorsOfAProgram = 16;    // other descriptors of a program
constexpr rlim_t kComfortableDescriptors = 1024;
constexpr rlim_t kLeastFile = 16 << 10;         // the smallest ring, and the pages before it
constexpr rlim_t kComfortableFile = 128 << 20;  // a pool, or a chunk of exposed memory
constexpr std::uint64_t kLeastMemory = std::uint64_t{64} << 20;
constexpr std::uint64_t kComfortableMemory = std::uint64_t{512} << 20;

std::uint64_t machine_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string limit_text(rlim_t limit) { return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit); }

}  // namespace

Finding check_kernel() {
  utsname system{};
  uname(&system);
  int major = 0;
  int minor = 0;
  std::sscanf(system.release, "%d.%d", &major, &minor);
  const auto at_least = [&](int wanted_major, int wanted_minor) {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  };
  const std::string found = fmt::format("{} {} on {}", system.sysname, system.release, system.machine);
  if (!at_least(3, 17)) return {Verdict::fail, found, "memory files need Linux 3.17 or newer"};
  if (!at_least(5, 1)) {
    return {Verdict::warn, found,
            "before Linux 5.1 the statistics of a process cannot be sealed against other writers"};
  }
  return {Verdict::ok, found, ""};
}

Finding check_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  const auto share = cgroup_cpu_limit();
  std::string found = fmt::format("{} usable", cores);
  if (share) found += fmt::format(", limited to the time of {:.1f}", *share);
  if (cores < 2) {
    return {Verdict::warn, found,
            "with one core both ends of a stream take turns: give it two, or expect less than half"};
  }
  if (share && *share < 2) {
    return {Verdict::warn, found,
            "raise the control group's CPU limit to 2 cores or more: both ends of a stream run at once"};
  }
  return {Verdict::ok, found, ""};
}

Finding check_memory() {
  const auto limit = cgroup_memory_limit();
  const std::uint64_t usable = std::min(machine_memory(), limit.value_or(UINT64_MAX));
  std::string found = human_bytes(machine_memory());
  if (limit) found += fmt::format(", limited to {}", human_bytes(*limit));
  const std::string advice =
      "a ring counts as memory of the process that writes it first: raise the control group's limit, or make rings "
      "smaller (WHERRY_RING, and for those of peers WHERRY_PEER_RING)";
  if (usable < kLeastMemory) return {Verdict::fail, found, advice};
  if (usable < kComfortableMemory) return {Verdict::warn, found, advice};
  return {Verdict::ok, found, ""};
}

Finding check_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t spare = limit.rlim_cur > kDescriptorsOfAProgram ? limit.rlim_cur - kDescriptorsOfAProgram : 0;
  const std::string found =
      limit.rlim_cur == RLIM_INFINITY
          ? "unlimited"
          : fmt::format("{}: room for about {} connections", limit.rlim_cur, spare / kDescriptorsPerConnection);
  const std::string advice = fmt::format(
      "each connection takes {} descriptors: raise the limit with ulimit -n (up to {} without an administrator)",
      kDescriptorsPerConnection, limit_text(limit.rlim_max));
  if (spare < kDescriptorsPerConnection) return {Verdict::fail, found, advice};
  if (limit.rlim_cur < kComfortableDescriptors) return {Verdict::warn, found, advice};
  return {Verdict::ok, found, ""};
}

Finding check_file_sizes() {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {Verdict::ok, "unlimited", ""};
  const std::string found = fmt::format("limited to {}", human_bytes(limit.rlim_cur));
  const std::string advice =
      "memory that processes share counts as a file: raise the limit with ulimit -f, or make rings smaller "
      "(WHERRY_RING), and pools (WHERRY_POOL)";
  if (limit.rlim_cur < kLeastFile) return {Verdict::fail, found, advice};
  if (limit.rlim_cur < kComfortableFile) return {Verdict::warn, found, advice};
  return {Verdict::ok, found, ""};
}

Finding check_locked_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {Verdict::ok, "unlimited", ""};
  const std::string found = human_bytes(limit.rlim_cur);
  if (limit.rlim_cur >= 64 * 1024) return {Verdict::ok, found, ""};
  return {Verdict::warn, found, "io_uring before Linux 5.12 and network fabrics lock memory: raise it with ulimit -l"};
}

Finding check_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string setting;
  std::getline(file, setting);
  const std::size_t open = setting.find('[');
  const std::size_t close = setting.find(']', open);
  if (open == std::string::npos || close == std::string::npos) return {Verdict::ok, "not offered by this kernel", ""};
  // Not a warning, because it is the default on all systems, and rings of the default size gain little.
  return {Verdict::ok, "for shared memory: " + setting.substr(open + 1, close - open - 1), ""};
}

}  // namespace wherry::tools::doctor
