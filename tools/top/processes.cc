// SPDX-License-Identifier: Apache-2.0
#include "top/processes.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/clock.hpp"
#include "top/statistics_file.hpp"

namespace wherry::tools {
namespace {

namespace fs = std::filesystem;

// Calls visit(entry) for each entry until it returns false. A directory that cannot be read, or that vanishes, counts
// as empty.
template <class Visit>
void for_each_entry(const fs::path& directory, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    if (!visit(entry->path())) return;
  }
}

std::optional<pid_t> pid_of(const fs::path& entry) {
  const std::string name = entry.filename();
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

bool is_own(const fs::path& process) {
  struct stat status{};
  return stat(process.c_str(), &status) == 0 && status.st_uid == geteuid();
}

// The process's id in its own namespace, which it writes into its page: the last number of the line.
std::uint64_t own_pid(const fs::path& process, pid_t fallback) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::uint64_t pid = 0;
    const std::size_t last = line.find_last_of(" \t") + 1;
    std::from_chars(line.data() + last, line.data() + line.size(), pid);
    return pid;
  }
  return static_cast<std::uint64_t>(fallback);
}

bool is_statistics_file(const fs::path& descriptor) {
  static const std::string prefix = std::string("/memfd:") + layout::kStatisticsMemfdName;
  std::error_code gone;
  const std::string target = fs::read_symlink(descriptor, gone);
  return !gone && (target == prefix || target == prefix + " (deleted)");
}

// Other files may have the page's name. Takes the first one that is this process's page.
std::optional<ProcessReading> read_process(const fs::path& process, pid_t pid) {
  std::optional<ProcessReading> reading;
  for_each_entry(process / "fd", [&](const fs::path& descriptor) {
    if (is_statistics_file(descriptor)) reading = read_statistics_file(descriptor, own_pid(process, pid));
    return !reading;
  });
  if (reading) reading->pid = pid;
  return reading;
}

}  // namespace

Reading read_processes() {
  Reading reading;
  for_each_entry("/proc", [&](const fs::path& entry) {
    const auto pid = pid_of(entry);
    if (!pid || !is_own(entry)) return true;
    if (auto process = read_process(entry, *pid)) reading.processes.push_back(std::move(*process));
    return true;
  });
  reading.at_ns = monotonic_ns();
  return reading;
}

}  // namespace wherry::tools
