// SPDX-License-Identifier: Apache-2.0
//
// The program `wherry`: finds the subcommand, reads its command line, runs it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <wherry/wherry.h>

#include "base/printable.hpp"
#include "base/readable.hpp"
#include "base/standard_descriptors.hpp"
#include "commands.hpp"
#include "manual/generate.hpp"

namespace {

using wherry::tools::Action;

struct Command {
  const char* name;
  const char* help;
  Action (*add)(CLI::App&);
};

// In the order `wherry --help` shows them.
constexpr std::array kCommands{
    Command{"ship", "Hand files and directory trees to a collector", wherry::tools::add_ship},
    Command{"collect", "Receive files from any number of shippers, verified", wherry::tools::add_collect},
    Command{"pipe", "Connect standard input or output to a stream", wherry::tools::add_pipe},
    Command{"serve", "Serve the files below a directory to the processes of cards", wherry::tools::add_serve},
    Command{"run", "Start a program with a node of its own", wherry::tools::add_run},
    Command{"mpirun", "Start an MPI program whose messages go over Wherry", wherry::tools::add_mpirun},
    Command{"card", "Own the cache of files that the programs of a node share", wherry::tools::add_card},
    Command{"top", "Show the endpoints of all running processes", wherry::tools::add_top},
    Command{"bench", "Measure this machine, and Wherry beside other ways to move data", wherry::tools::add_bench},
    Command{"config", "Print every option and its value", wherry::tools::add_config},
    Command{"doctor", "Check this machine and say what to change", wherry::tools::add_doctor},
};

// As most programs have it: 1 is "it was tried and failed", 2 is "the command line is wrong".
constexpr int kUsageError = 2;

/// The exit status, unless what the program had to say could not be said.
int ended(int status, const std::string& who) {
  const std::string problem = wherry::flush_standard_output();
  if (problem.empty()) return status;
  std::fprintf(stderr, "%s: write standard output: %s\n", who.c_str(), problem.c_str());
  return status == 0 ? 1 : status;
}

int run(CLI::App& command, const Action& action) {
  const std::string who = "wherry " + command.get_name();
  try {
    return ended(action(), who);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), wherry::printable(error.what()).c_str());
    return 1;
  }
}

// The parser only says that some subcommand is missing.
bool is_unknown(std::string_view word) {
  return (word == "--" || !word.starts_with('-')) &&
         std::none_of(kCommands.begin(), kCommands.end(), [&](const Command& command) { return word == command.name; });
}

}  // namespace

int main(int argc, char** argv) {
  wherry::reserve_standard_descriptors();
  CLI::App app{"Wherry moves data between a host and its many-core cards at the speed of memory.", "wherry"};
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return wherry::printable(error.what()) + "\nRun with --help for more information.\n";
  });
  app.set_version_flag("--version", "wherry " WHERRY_VERSION, "Print the version and exit");
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (const Command& command : kCommands) {
    CLI::App* added = app.add_subcommand(command.name, command.help);
    commands.emplace_back(added, command.add(*added));
  }
  if (const auto folder = wherry::manual::asked_for(argc, argv)) {
    wherry::manual::generate(app, *folder);
    return 0;
  }
  if (argc > 1 && is_unknown(argv[1])) {
    std::fprintf(stderr, "wherry: there is no subcommand \"%s\"; wherry --help lists them\n",
                 wherry::printable(argv[1]).c_str());
    return kUsageError;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ended(app.exit(error) == 0 ? 0 : kUsageError, "wherry");
  }
  for (const auto& [command, action] : commands) {
    if (command->parsed()) return run(*command, action);
  }
  return kUsageError;
}
