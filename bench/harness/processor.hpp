// SPDX-License-Identifier: Apache-2.0
// Which processor this is: figures of one make say little about another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wherry::bench {

/// A cache of one core. Those of instructions are left out.
struct Cache {
  std::string name{};       ///< "L1d", "L2", "L3"
  std::uint64_t bytes = 0;  ///< its size
  std::string cores{};      ///< which cores share it, as the kernel lists them: "0", "0-3,8-11"
};

/// Texts as the kernel has them; empty where it does not say.
struct Processor {
  std::string make{};  ///< "AMD", "Intel", "Arm", or the vendor's own word
  std::string family{};
  std::string model{};
  std::vector<Cache> caches{};  ///< of the first core that this process may use
};

/// From the first entry of /proc/cpuinfo, x86's or Arm's; no caches.
Processor processor_in(std::istream& cpuinfo);

/// From the folder cache/ of a core below /sys/devices/system/cpu; in order of level. Empty if it is not there.
std::vector<Cache> caches_in(const std::filesystem::path& folder);

/// The one that this process runs on.
Processor this_processor();

/// "AMD family 26 model 2: L1d 48 KiB, L2 1 MiB, L3 32 MiB of cores 0-1"
std::string text_of(const Processor& processor);

/// {"make", "family", "model", "caches": [{"name", "bytes", "cores"}]}
nlohmann::json to_json(const Processor& processor);

}  // namespace wherry::bench
