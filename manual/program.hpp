// SPDX-License-Identifier: Apache-2.0
//
// What the main function of each program does: reads its command line, runs what was asked for, and reports failures.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

namespace wherry::manual {

/// What a command does once its command line has been read. Returns the exit status of the program. An exception that
/// escapes it becomes one line on standard error and exit status 1.
using Action = std::function<int()>;

/// As most programs have it: 1 is "it was tried and failed", 2 is "the command line is wrong".
inline constexpr int kUsageError = 2;

/// Reads the command line. Returns the exit status if that is all: --generate FOLDER, --help, --version or an error.
/// Messages begin with `name`, such as "wherry ship".
std::optional<int> parse(CLI::App& app, const std::string& name, int argc, char** argv);

/// Runs the action and flushes standard output. Messages begin with `name`, such as "wherry ship".
int run(const std::string& name, const Action& action);

}  // namespace wherry::manual
