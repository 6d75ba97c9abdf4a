// SPDX-License-Identifier: Apache-2.0
//
// A program's commands and options as plain data, from which man pages and completions are generated.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wherry::manual {

struct Option {
  std::vector<std::string> flags;  ///< "-t" and "--to"; for a positional argument only its name
  std::string value;               ///< the text of --help behind the flags, such as "TEXT=auto"; empty: no value
  std::string help;
  bool repeats = false;
  bool required = false;
};

struct Command {
  std::vector<std::string> path;  ///< {"wherry", "bench", "stream"}
  std::string help;
  std::string notes;  ///< the end of --help
  std::vector<Option> options;
  std::vector<Option> arguments;
  std::vector<Command> commands;  ///< the next level only
  bool is_other_program = false;  ///< a separate program, which has its own pages

  [[nodiscard]] const std::string& name() const { return path.back(); }
  [[nodiscard]] std::string joined(const std::string& separator) const;
};

/// Returns the program itself, then each command before its own subcommands. Omits what --help does not show.
std::vector<Command> commands_of(const CLI::App& program);

}  // namespace wherry::manual
