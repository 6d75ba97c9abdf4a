// SPDX-License-Identifier: Apache-2.0
#include "manual/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace wherry::manual {
namespace {

/// Replaces line ends, which are only for --help: man pages and shells break lines themselves.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Option describe(const CLI::Option& option, bool positional) {
  const CLI::Formatter formatter;
  Option result;
  if (positional) {
    result.flags.push_back(option.get_name(true, false));
  } else {
    for (const std::string& name : option.get_snames()) result.flags.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) result.flags.push_back("--" + name);
  }
  result.value = formatter.make_option_opts(&option);
  result.value.erase(0, result.value.find_first_not_of(' '));
  result.help = one_line(option.get_description());
  result.repeats = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  result.required = option.get_required();
  return result;
}

Command describe(const CLI::App& app, std::vector<std::string> path) {
  // "wherry bench" is two words of the command line.
  std::istringstream words(app.get_name());
  for (std::string word; words >> word;) path.push_back(word);
  Command command{std::move(path), one_line(app.get_description()), app.get_footer(), {}, {}, {}, false};
  command.is_other_program = app.get_prefix_command();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const bool positional = option->get_positional();
    (positional ? command.arguments : command.options).push_back(describe(*option, positional));
  }
  for (const CLI::App* below : app.get_subcommands({})) {
    if (!below->get_group().empty()) command.commands.push_back(describe(*below, command.path));
  }
  return command;
}

void flatten(const Command& command, std::vector<Command>& all) {
  all.push_back(command);
  for (const Command& below : command.commands) flatten(below, all);
}

}  // namespace

std::string Command::joined(const std::string& separator) const {
  return fmt::format("{}", fmt::join(path, separator));
}

std::vector<Command> commands_of(const CLI::App& program) {
  std::vector<Command> all;
  flatten(describe(program, {}), all);
  return all;
}

}  // namespace wherry::manual
