// SPDX-License-Identifier: Apache-2.0
#include "base/namespaces.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace wherry {
namespace {

/// Namespaces made after boot have this number or a higher one. The initial ones have lower numbers, except those of
/// networks and mounts before Linux 6.18.
constexpr std::uint64_t kFirstDynamicNumber = 0xF0000000;

/// A setting that exists only in the initial network namespace, and one that exists in all.
constexpr const char* kInitialNetworkOnly = "/proc/sys/net/core/netdev_budget";
constexpr const char* kEveryNetwork = "/proc/sys/net/core/somaxconn";

bool exists(const char* path) { return ::access(path, F_OK) == 0; }

std::optional<bool> is_initial_network() {
  if (exists(kInitialNetworkOnly)) return true;
  if (exists(kEveryNetwork)) return false;
  return std::nullopt;
}

}  // namespace

std::uint64_t namespace_number(const char* kind, const std::string& process) {
  struct stat found{};
  return ::stat(("/proc/" + process + "/ns/" + kind).c_str(), &found) == 0 ? found.st_ino : 0;
}

std::uint64_t namespace_number(const char* kind) { return namespace_number(kind, "thread-self"); }

std::optional<bool> is_initial_namespace(const char* kind) {
  const std::uint64_t own = namespace_number(kind);
  if (own == 0) return std::nullopt;
  if (own < kFirstDynamicNumber) return true;
  const std::string_view name(kind);
  if (name == "net") return is_initial_network();
  if (name != "mnt") return false;
  // Process 1 is the system's only in the initial pid namespace.
  const std::uint64_t first = namespace_number(kind, "1");
  if (first == 0 || is_initial_namespace("pid") != true) return std::nullopt;
  return own == first;
}

}  // namespace wherry
