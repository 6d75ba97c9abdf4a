// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string_view>

#include "manual/completion.hpp"

namespace wherry::manual {
namespace {

/// Quotes a text for single quotes in a specification of _arguments.
std::string zsh_quoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string completion_function(const Command& command) { return "_" + command.joined("_"); }

/// Formats an option as '(-t --to)'{-t,--to}'[help]:value:_files'.
std::string specification(const Option& option) {
  const std::string value = option.value.empty() ? "" : ":value:_files";
  if (option.flags.size() == 1) {
    return fmt::format(" \\\n    '{}[{}]{}'", option.flags.front(), zsh_quoted(option.help), value);
  }
  return fmt::format(" \\\n    '({})'{{{}}}'[{}]{}'", fmt::join(option.flags, " "), fmt::join(option.flags, ","),
                     zsh_quoted(option.help), value);
}

std::string specifications(const Command& command) {
  std::string text;
  for (const Option& option : command.options) text += specification(option);
  for (const Option& argument : command.arguments) {
    text += fmt::format(" \\\n    '{}:{}:_files'", argument.repeats ? "*" : "", zsh_quoted(argument.flags.front()));
  }
  return text;
}

std::string leaf(const Command& command) {
  return fmt::format("{}() {{\n  _arguments -s{}\n}}\n\n", completion_function(command), specifications(command));
}

std::string parent(const Command& command) {
  std::string offered;
  std::string called;
  for (const Command& below : command.commands) {
    offered += fmt::format("\n        '{}:{}'", below.name(), zsh_quoted(below.help));
    const std::string function = completion_function(below);
    // A separate program, which may not be installed.
    const std::string present = below.is_other_program ? fmt::format("(( $+functions[{}] )) && ", function) : "";
    called += fmt::format("        {}) {}{} ;;\n", below.name(), present, function);
  }
  return fmt::format(R"({0}() {{
  local context state state_descr line
  typeset -A opt_args
  _arguments -C{1} \
    '1:command:->command' \
    '*::argument:->rest'
  case $state in
    command)
      local -a commands=({2})
      _describe command commands
      ;;
    rest)
      case $words[1] in
{3}      esac
      ;;
  esac
}}

)",
                     completion_function(command), specifications(command), offered, called);
}

}  // namespace

std::string zsh_completion(const std::vector<Command>& commands) {
  const Command& program = commands.front();
  // A program that is called from the completion of another program is only autoloaded.
  std::string text = program.path.size() > 1 ? "#autoload\n\n" : fmt::format("#compdef {}\n\n", program.name());
  for (const Command& command : commands) {
    if (!command.is_other_program) text += command.commands.empty() ? leaf(command) : parent(command);
  }
  return text + fmt::format("{} \"$@\"\n", completion_function(program));
}

}  // namespace wherry::manual
