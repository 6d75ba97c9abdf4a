// SPDX-License-Identifier: Apache-2.0
// The command line of `wherry bench`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/options.hpp"
#include "bench/questions/questions.hpp"

namespace wherry::tools {

/// As typed; shared by the subcommands, of which one is given.
struct BenchArguments {
  std::vector<std::string> sizes;
  std::optional<std::string> bytes;
  std::vector<std::string> modes;
  std::vector<std::uint32_t> senders;
  std::optional<double> seconds;
  bench::Options other;
  std::string json;
  std::string plot;

  void add_to(CLI::App& command, const bench::Asked& question);
  /// With the question's defaults for what was not given. Throws wherry::Error.
  [[nodiscard]] bench::Options options(const bench::Asked& question) const;

 private:
  void add_lengths(CLI::App& command, const bench::Asked& question);
};

}  // namespace wherry::tools
