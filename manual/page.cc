// SPDX-License-Identifier: Apache-2.0
#include "manual/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "manual/roff.hpp"
#include "wherry/wherry.h"

namespace wherry::manual {
namespace {

std::string synopsis(const Command& command) {
  std::string text = fmt::format(".B {}\n[\\fIOPTION\\fR]...", escape(command.joined(" ")));
  for (const Option& argument : command.arguments) {
    const std::string name = fmt::format("\\fI{}\\fR{}", escape(argument.flags.front()), argument.repeats ? "..." : "");
    text += argument.required ? " " + name : fmt::format(" [{}]", name);
  }
  return text + (command.commands.empty() ? "\n" : " \\fICOMMAND\\fR ...\n");
}

std::string list(const char* heading, const std::vector<Option>& options) {
  if (options.empty()) return "";
  std::string text = fmt::format(".SH {}\n", heading);
  for (const Option& option : options) {
    text += ".TP\n";
    for (const std::string& flag : option.flags) text += (&flag == &option.flags.front() ? "" : ", ") + bold(flag);
    if (!option.value.empty()) text += fmt::format(" \\fI{}\\fR", escape(option.value));
    text += "\n" + escape(option.help) + "\n";
  }
  return text;
}

/// The footer of --help. Its part about the exit status is a separate section, as usual in man pages.
std::string notes(const Command& command, bool status) {
  static constexpr std::string_view kMark = "Exit status: ";
  const std::size_t begin = std::min(command.notes.find(kMark), command.notes.size());
  std::string text = status ? command.notes.substr(std::min(begin + kMark.size(), command.notes.size()))
                            : command.notes.substr(0, begin);
  if (text.empty()) return "";
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return (status ? ".SH EXIT STATUS\n" : ".PP\n") + escape(text) + "\n";
}

std::string subcommands(const Command& command) {
  if (command.commands.empty()) return "";
  std::string text = ".SH COMMANDS\n";
  for (const Command& below : command.commands) {
    text += fmt::format(".TP\n{}(1)\n{}\n", bold(below.joined("-")), escape(below.help));
  }
  return text;
}

std::string see_also(const Command& command) {
  if (command.path.size() == 1) return "";
  Command above = command;
  above.path.pop_back();
  return fmt::format(".SH SEE ALSO\n{}(1)\n", bold(above.joined("-")));
}

}  // namespace

std::string page_of(const Command& command) {
  const std::string name = command.joined("-");
  return fmt::format(".TH \"{}\" 1 \"\" \"Wherry {}\" \"User Commands\"\n", escape(upper(name)), WHERRY_VERSION) +
         fmt::format(".SH NAME\n{} \\- {}\n", escape(name), escape(brief(command.help))) + ".SH SYNOPSIS\n" +
         synopsis(command) +                                                          //
         ".SH DESCRIPTION\n" + escape(command.help) + "\n" + notes(command, false) +  //
         list("ARGUMENTS", command.arguments) + list("OPTIONS", command.options) + subcommands(command) +
         notes(command, true) + see_also(command);
}

}  // namespace wherry::manual
