// SPDX-License-Identifier: Apache-2.0
//
// A program's commands and options as plain data: what the man pages and the completions are printed from.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wherry::manual {

struct Option {
  std::vector<std::string> flags;  ///< "-t" and "--to"; of a positional argument its name only
  std::string value;               ///< what --help shows behind the flags, as "TEXT=auto"; empty: it takes no value
  std::string help;
  bool repeats = false;
  bool required = false;
};

struct Command {
  std::vector<std::string> path;  ///< {"wherry", "bench", "stream"}
  std::string help;
  std::string notes;  ///< what --help ends with
  std::vector<Option> options;
  std::vector<Option> arguments;
  std::vector<Command> commands;  ///< the next level only
  bool is_other_program = false;  ///< a program of its own, which has its own pages

  [[nodiscard]] const std::string& name() const { return path.back(); }
  [[nodiscard]] std::string joined(const std::string& separator) const;
};

/// The program itself, then each command before its own subcommands. What --help does not show is left out.
std::vector<Command> commands_of(const CLI::App& program);

}  // namespace wherry::manual
