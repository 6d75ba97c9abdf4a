// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace wherry {

/// Returns the smallest memory limit, in bytes, of this process's control group and those that contain it. Empty: no
/// limit.
/// @param root  prefix of /proc and /sys, for tests
std::optional<std::uint64_t> cgroup_memory_limit(const std::filesystem::path& root = "/");

/// Returns the smallest CPU limit likewise, in cores. Empty: no limit.
std::optional<double> cgroup_cpu_limit(const std::filesystem::path& root = "/");

}  // namespace wherry
