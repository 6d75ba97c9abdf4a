// SPDX-License-Identifier: Apache-2.0
#include "manual/program.hpp"

#include <cstdio>
#include <exception>

#include "base/printable.hpp"
#include "base/standard_descriptors.hpp"
#include "manual/generate.hpp"

namespace wherry::manual {
namespace {

/// Returns `status`; but 1 if the program's output could not be written.
int ended(int status, const std::string& name) {
  const std::string problem = flush_standard_output();
  if (problem.empty()) return status;
  std::fprintf(stderr, "%s: write standard output: %s\n", name.c_str(), problem.c_str());
  return 1;
}

}  // namespace

std::optional<int> parse(CLI::App& app, const std::string& name, int argc, char** argv) {
  if (const auto folder = asked_for(argc, argv)) {
    generate(app, *folder);
    return 0;
  }
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return printable(error.what()) + "\nRun with --help for more information.\n";
  });
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return ended(app.exit(error) == 0 ? 0 : kUsageError, name);
  }
}

int run(const std::string& name, const Action& action) {
  try {
    return ended(action(), name);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), printable(error.what()).c_str());
    return 1;
  }
}

}  // namespace wherry::manual
