// SPDX-License-Identifier: Apache-2.0
// The questions of `wherry bench`: which points each measures, and which tables answer it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/harness/campaign.hpp"
#include "bench/harness/options.hpp"
#include "bench/harness/report.hpp"

namespace wherry::bench {

struct Asked {
  std::string name;                    ///< of the subcommand
  std::string help;                    ///< one line
  std::vector<std::uint64_t> sizes;    ///< by default
  std::vector<std::uint64_t> smoke;    ///< the same for --smoke
  std::vector<std::uint32_t> senders;  ///< by default
  std::vector<Point> (*points)(const Options& options);
  std::string (*tables)(std::span<const Row> rows, const Options& options);
};

std::span<const Asked> questions();

}  // namespace wherry::bench
