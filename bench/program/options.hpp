// SPDX-License-Identifier: Apache-2.0
// The command line of `wherry bench`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/options.hpp"
#include "bench/questions/questions.hpp"

namespace wherry::bench {

/// As typed; shared by the subcommands, of which one is given.
struct BenchArguments {
  std::vector<std::string> sizes;
  std::optional<std::string> bytes;
  std::vector<std::string> modes;
  std::vector<std::uint32_t> senders;
  std::optional<double> seconds;
  Options other;
  std::string json;
  std::string plot;

  void add_to(CLI::App& command, const Asked& question);
  /// With the question's defaults for what was not given. Throws wherry::Error.
  [[nodiscard]] Options options(const Asked& question) const;

 private:
  void add_lengths(CLI::App& command, const Asked& question);
};

}  // namespace wherry::bench
