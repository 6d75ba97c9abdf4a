// SPDX-License-Identifier: Apache-2.0
// The options that every benchmark between processes has, and its main.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <string>

#include "bench/harness/report.hpp"

namespace wherry::bench {

struct Options {
  int samples = 7;
  std::string json;
  bool smoke = false;
};

inline void add_options(CLI::App& app, Options& options) {
  app.add_option("--samples", options.samples, "Samples of each figure")->check(CLI::Range(1, 1000));
  app.add_option("--json", options.json, "Also write the figures to this file; -: standard output");
  app.add_flag("--smoke", options.smoke, "One second: that it runs, not what it measures");
}

/// Parses the command line, runs `run()`, which returns the rows, and writes them.
template <class Run>
int run_benchmark(CLI::App& app, const Options& options, int argc, char** argv, Run&& run) {
  CLI11_PARSE(app, argc, argv);
  try {
    const std::vector<Row> rows = run();
    if (!options.json.empty()) write_json(options.json, rows);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace wherry::bench
