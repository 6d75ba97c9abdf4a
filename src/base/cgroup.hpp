// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace wherry {

/// The least memory limit, in bytes, of this process's control group and those around it. Empty: none.
/// @param root  in front of /proc and /sys; another one for tests
std::optional<std::uint64_t> cgroup_memory_limit(const std::filesystem::path& root = "/");

/// The least share of CPU time, in cores. Empty: no limit.
std::optional<double> cgroup_cpu_limit(const std::filesystem::path& root = "/");

}  // namespace wherry
