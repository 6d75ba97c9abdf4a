// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/programs/usage.hpp"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;

/// The sum of the numbers behind a label that begins lines of a file in /proc; 0 when the process has ended.
std::uint64_t sum_in(const fs::path& file, std::string_view label) {
  std::ifstream lines(file);
  std::uint64_t sum = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(label)) sum += std::stoull(line.substr(label.size()));
  }
  return sum;
}

fs::path proc(pid_t process) { return fs::path("/proc") / std::to_string(process); }

}  // namespace

double cpu_seconds_of(std::span<const pid_t> processes) {
  double sum = 0;
  for (const pid_t process : processes) {
    clockid_t clock = 0;
    timespec time{};
    if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) continue;
    sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  return sum;
}

std::uint64_t context_switches_of(std::span<const pid_t> processes) {
  std::uint64_t sum = 0;
  for (const pid_t process : processes) {
    std::error_code ended;
    for (const auto& thread : fs::directory_iterator(proc(process) / "task", ended)) {
      const fs::path status = thread.path() / "status";
      sum += sum_in(status, "voluntary_ctxt_switches:") + sum_in(status, "nonvoluntary_ctxt_switches:");
    }
  }
  return sum;
}

std::uint64_t memory_of(std::span<const pid_t> processes) {
  std::uint64_t kilobytes = 0;
  for (const pid_t process : processes) kilobytes += sum_in(proc(process) / "smaps_rollup", "Pss:");
  return kilobytes * 1024;
}

}  // namespace wherry::bench
