// SPDX-License-Identifier: Apache-2.0
// Which processor this is: figures of one make say little about another.
#pragma once

#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/caches.hpp"

namespace wherry::bench {

/// Texts as the kernel has them; empty where it does not say.
struct Processor {
  std::string make{};  ///< "AMD", "Intel", "Arm", or the vendor's own word
  std::string family{};
  std::string model{};
  std::vector<Cache> caches{};  ///< of the first core that this process may use
};

/// From the first entry of /proc/cpuinfo, x86's or Arm's; no caches.
Processor processor_in(std::istream& cpuinfo);

/// The one that this process runs on.
Processor this_processor();

/// "AMD family 26 model 2: L1d 48 KiB, L2 1 MiB, L3 32 MiB of cores 0-1"
std::string text_of(const Processor& processor);

/// {"make", "family", "model", "caches": [{"name", "bytes", "cores"}]}
nlohmann::json to_json(const Processor& processor);

}  // namespace wherry::bench
