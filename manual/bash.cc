// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "manual/completion.hpp"

namespace wherry::manual {
namespace {

std::string function_of(const Command& program) {
  std::string name = "_" + program.joined("_");
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

std::string flags_of(const Command& command) {
  std::vector<std::string> flags;
  for (const Option& option : command.options) flags.insert(flags.end(), option.flags.begin(), option.flags.end());
  return fmt::format("{}", fmt::join(flags, " "));
}

std::string names_below(const Command& command) {
  std::vector<std::string> names;
  for (const Command& below : command.commands) names.push_back(below.name());
  return fmt::format("{}", fmt::join(names, " "));
}

/// Completes a separate program, if it is installed, from its file beside this one.
std::string other_program(const Command& command) {
  return fmt::format(R"(    '{0}')
      # shellcheck source=/dev/null
      if ! declare -F {1} >/dev/null && [[ -r ${{BASH_SOURCE[0]%/*}}/{2} ]]; then source "${{BASH_SOURCE[0]%/*}}/{2}"; fi
      if declare -F {1} >/dev/null; then {1} && return; fi
      ;;
)",
                     command.joined(" "), function_of(command), command.joined("-"));
}

/// Follows the words before the cursor from command to subcommand, up to `--`.
constexpr const char* kWalk = R"({0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} command={1} commands= flags= word
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    if [[ $word == -- ]]; then return; fi
    case "$command $word" in
{2}    esac
  done
  case $command in
{3}  esac
  if [[ $current == -* ]]; then commands=$flags; fi
  mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
}}
)";

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::string steps;
  std::string words;
  for (const Command& command : commands) {
    const std::string path = command.joined(" ");
    if (command.path.size() > 1) steps += fmt::format("      '{}') command='{}' ;;\n", path, path);
    words += command.is_other_program ? other_program(command)
                                      : fmt::format("    '{}') commands='{}' flags='{}' ;;\n", path,
                                                    names_below(command), flags_of(command));
  }
  if (steps.empty()) steps = "      *) ;;\n";
  const Command& program = commands.front();
  const std::string function = function_of(program);
  const std::string text = fmt::format(kWalk, function, program.path.front(), steps, words);
  // A program that is called from the completion of another program is not registered.
  return program.path.size() > 1 ? text
                                 : text + fmt::format("complete -o default -F {} {}\n", function, program.name());
}

}  // namespace wherry::manual
