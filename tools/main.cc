// SPDX-License-Identifier: Apache-2.0
//
// The program `wherry`: finds the subcommand, parses its command line, and runs it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <wherry/wherry.h>

#include "base/printable.hpp"
#include "base/standard_descriptors.hpp"
#include "commands.hpp"
#include "manual/program.hpp"
#include "mpirun/command_line.hpp"
#include "mpirun/usage_error.hpp"

namespace {

using wherry::tools::Action;
using Words = std::vector<std::string>;

struct Command {
  const char* name;
  const char* help;
  Action (*add)(CLI::App&);
  /// Respells the words after the subcommand's name for the parser. Null: the parser reads them as they are.
  Words (*normalise)(const CLI::App&, const Words&) = nullptr;
};

// In the order of `wherry --help`.
constexpr std::array kCommands{
    Command{"ship", "Send files and directory trees to a collector", wherry::tools::add_ship},
    Command{"collect", "Receive files from shippers and verify them", wherry::tools::add_collect},
    Command{"pipe", "Connect standard input or output to a stream", wherry::tools::add_pipe},
    Command{"serve", "Serve the files below a directory to other nodes", wherry::tools::add_serve},
    Command{"mount", "Mount the files of a wherry serve, for any program", wherry::tools::add_mount},
    Command{"run", "Start a program with its own node number and settings", wherry::tools::add_run},
    Command{"mpirun", "Start an MPI program that sends its messages over Wherry", wherry::tools::add_mpirun,
            wherry::tools::normalised},
    Command{"top", "Show the endpoints of all running processes", wherry::tools::add_top},
    Command{"bench", "Measure this machine, and compare Wherry with other ways to move data", wherry::tools::add_bench},
    Command{"key", "Make the key with which hosts authenticate each other", wherry::tools::add_key},
    Command{"config", "Print every option and its value", wherry::tools::add_config},
    Command{"doctor", "Check this machine and advise what to change", wherry::tools::add_doctor},
};

// The parser reports an unknown subcommand only as a missing one.
bool is_unknown(std::string_view word) {
  return (word == "--" || !word.starts_with('-')) &&
         std::none_of(kCommands.begin(), kCommands.end(), [&](const Command& command) { return word == command.name; });
}

/// The program's arguments, respelled for the parser.
Words normalised_arguments(const CLI::App& app, int argc, char** argv) {
  Words words(argv, argv + argc);
  if (words.size() < 2) return words;
  for (const Command& command : kCommands) {
    if (command.normalise == nullptr || words[1] != command.name) continue;
    const Words rest = command.normalise(*app.get_subcommand(command.name), Words(words.begin() + 2, words.end()));
    words.resize(2);
    words.insert(words.end(), rest.begin(), rest.end());
  }
  return words;
}

/// The arguments of main, respelled. Throws UsageError.
class Arguments {
 public:
  Arguments(const CLI::App& app, int argc, char** argv) : words_(normalised_arguments(app, argc, argv)) {
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }

  [[nodiscard]] int count() const { return static_cast<int>(words_.size()); }
  [[nodiscard]] char** pointers() { return pointers_.data(); }

 private:
  Words words_;
  std::vector<char*> pointers_;
};

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    Arguments arguments(app, argc, argv);
    return wherry::manual::parse(app, "wherry", arguments.count(), arguments.pointers());
  } catch (const wherry::tools::UsageError& error) {
    std::fprintf(stderr, "wherry %s: %s\n", argv[1], wherry::printable(error.what()).c_str());
    return wherry::tools::UsageError::kStatus;
  }
}

}  // namespace

int main(int argc, char** argv) {
  wherry::reserve_standard_descriptors();
  CLI::App app{"Wherry moves data between a host and its many-core cards at the speed of memory.", "wherry"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "wherry " WHERRY_VERSION, "Print the version and exit");
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (const Command& command : kCommands) {
    CLI::App* added = app.add_subcommand(command.name, command.help);
    commands.emplace_back(added, command.add(*added));
  }
  if (argc > 1 && is_unknown(argv[1])) {
    std::fprintf(stderr, "wherry: unknown subcommand \"%s\"; wherry --help lists them\n",
                 wherry::printable(argv[1]).c_str());
    return wherry::manual::kUsageError;
  }
  if (const auto status = parse(app, argc, argv)) return *status;
  for (const auto& [command, action] : commands) {
    if (command->parsed()) return wherry::manual::run("wherry " + command->get_name(), action);
  }
  return wherry::manual::kUsageError;
}
