// SPDX-License-Identifier: Apache-2.0
// The caches of a core, as the kernel describes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace wherry {

/// A cache that holds data. Pure instruction caches are left out.
struct Cache {
  int level = 0;
  bool unified = false;     ///< holds instructions too
  std::uint64_t bytes = 0;  ///< its size
  std::string cores{};      ///< the cores that share it, as the kernel lists them: "0", "0-3,8-11"
};

/// Reads the folder cache/ of a core in /sys/devices/system/cpu. Sorted by level; empty if there is no such folder.
std::vector<Cache> caches_in(const std::filesystem::path& folder);

/// Returns the lowest core that this process may run on.
int first_core();

}  // namespace wherry
