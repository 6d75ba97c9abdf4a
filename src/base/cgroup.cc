// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>

namespace wherry {
namespace {

namespace fs = std::filesystem;

// A line of /proc/self/cgroup: ID:CONTROLLERS:PATH. In version 2 of control groups CONTROLLERS is empty.
struct Membership {
  std::string controllers;
  std::string path;
};

std::optional<Membership> parse_membership(const std::string& line) {
  const std::size_t first = line.find(':');
  const std::size_t second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  return Membership{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

bool has_controller(std::string_view controllers, std::string_view wanted) {
  std::istringstream list{std::string(controllers)};
  for (std::string name; std::getline(list, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

template <class Value>
using ReadLimit = std::function<std::optional<Value>(const fs::path& group)>;

// Returns the smallest limit of the group and those that contain it. Groups that a container cannot see have no files.
template <class Value>
std::optional<Value> least(const fs::path& mount, const fs::path& group, const ReadLimit<Value>& read) {
  std::optional<Value> limit;
  for (fs::path path = group.relative_path();; path = path.parent_path()) {
    if (const auto here = read(mount / path)) limit = limit ? std::min(*limit, *here) : *here;
    if (path.empty()) return limit;
  }
}

template <class Value>
std::optional<Value> limit_of(const fs::path& root, std::string_view controller, const ReadLimit<Value>& version1,
                              const ReadLimit<Value>& version2) {
  std::optional<Value> limit;
  std::ifstream memberships(root / "proc/self/cgroup");
  for (std::string line; std::getline(memberships, line);) {
    const auto membership = parse_membership(line);
    if (!membership) continue;
    const fs::path mounts = root / "sys/fs/cgroup";
    std::optional<Value> found;
    if (membership->controllers.empty()) found = least(mounts, membership->path, version2);
    if (has_controller(membership->controllers, controller)) {
      found = least(mounts / controller, membership->path, version1);
    }
    if (found) limit = limit ? std::min(*limit, *found) : *found;
  }
  return limit;
}

template <class Number>
std::optional<Number> first_number(const fs::path& file) {
  std::ifstream stream(file);
  Number number{};
  return stream >> number ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> memory_version1(const fs::path& group) {
  // Without a limit the file holds the largest multiple of the page size.
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;
  const auto limit = first_number<std::uint64_t>(group / "memory.limit_in_bytes");
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

std::optional<std::uint64_t> memory_version2(const fs::path& group) {
  return first_number<std::uint64_t>(group / "memory.max");  // "max", no limit, is not a number
}

std::optional<double> share(std::optional<double> quota, std::optional<double> period) {
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

std::optional<double> cpu_version1(const fs::path& group) {
  return share(first_number<double>(group / "cpu.cfs_quota_us"), first_number<double>(group / "cpu.cfs_period_us"));
}

std::optional<double> cpu_version2(const fs::path& group) {
  std::ifstream stream(group / "cpu.max");
  double quota = 0;
  double period = 0;
  return stream >> quota >> period ? share(quota, period) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> cgroup_memory_limit(const fs::path& root) {
  return limit_of<std::uint64_t>(root, "memory", memory_version1, memory_version2);
}

std::optional<double> cgroup_cpu_limit(const fs::path& root) {
  return limit_of<double>(root, "cpu", cpu_version1, cpu_version2);
}

}  // namespace wherry
