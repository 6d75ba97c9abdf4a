// SPDX-License-Identifier: Apache-2.0
// The caches of a core, as the kernel describes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace wherry {

/// Of data; those of instructions are left out.
struct Cache {
  int level = 0;
  bool unified = false;     ///< holds instructions too
  std::uint64_t bytes = 0;  ///< its size
  std::string cores{};      ///< which share it, as the kernel lists them: "0", "0-3,8-11"
};

/// From the folder cache/ of a core below /sys/devices/system/cpu; in order of level. Empty if it is not there.
std::vector<Cache> caches_in(const std::filesystem::path& folder);

/// The lowest of the cores that this process may run on.
int first_core();

}  // namespace wherry
