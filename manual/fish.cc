// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "manual/completion.hpp"

namespace wherry::manual {
namespace {

std::string quote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

/// A fish condition: the words before the cursor name this command, and none of its subcommands.
std::string condition(const Command& command) {
  std::string text;
  for (std::size_t i = 1; i < command.path.size(); ++i) {
    text += fmt::format("{}__fish_seen_subcommand_from {}", i == 1 ? "" : "; and ", command.path[i]);
  }
  std::vector<std::string> below;
  for (const Command& each : command.commands) below.push_back(each.name());
  if (!below.empty()) {
    text += fmt::format("{}not __fish_seen_subcommand_from {}", text.empty() ? "" : "; and ", fmt::join(below, " "));
  }
  return text.empty() ? "" : fmt::format(" -n {}", quote(text));
}

std::string flags_of(const Option& option) {
  std::string text;
  for (const std::string& flag : option.flags) {
    text += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
  }
  return text + (option.value.empty() ? "" : " -r");
}

}  // namespace

std::string fish_completion(const std::vector<Command>& commands) {
  const std::string begin = "complete -c " + commands.front().path.front();
  std::string text;
  for (const Command& command : commands) {
    if (command.is_other_program) {
      const std::string file = fmt::format("(status dirname)/{}.fish", command.joined("-"));
      text += fmt::format("test -r {0}; and source {0}\n", file);
    }
    const std::string when = condition(command);
    for (const Command& below : command.commands) {
      text += fmt::format("{}{} -f -a {} -d {}\n", begin, when, below.name(), quote(below.help));
    }
    for (const Option& option : command.options) {
      text += fmt::format("{}{}{} -d {}\n", begin, when, flags_of(option), quote(option.help));
    }
  }
  return text;
}

}  // namespace wherry::manual
