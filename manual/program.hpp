// SPDX-License-Identifier: Apache-2.0
//
// The common part of each program's main function: parses its command line, runs the action, and reports failures.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

namespace wherry::manual {

/// The action of a command, after its command line was parsed. Returns the exit status of the program. An exception
/// that escapes becomes one line on standard error, and exit status 1.
using Action = std::function<int()>;

/// The usual convention: 1 means that the action failed, 2 that the command line is wrong.
inline constexpr int kUsageError = 2;

/// Parses the command line. Returns the exit status if no action follows: --generate FOLDER, --help, --version or an
/// error. Messages begin with `name`, such as "wherry ship".
std::optional<int> parse(CLI::App& app, const std::string& name, int argc, char** argv);

/// Runs the action and flushes standard output. Messages begin with `name`, such as "wherry ship".
int run(const std::string& name, const Action& action);

}  // namespace wherry::manual
