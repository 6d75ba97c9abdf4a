// SPDX-License-Identifier: Apache-2.0
#include "manual/generate.hpp"

#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "manual/commands.hpp"
#include "manual/completion.hpp"
#include "manual/page.hpp"

namespace wherry::manual {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace

std::optional<std::filesystem::path> asked_for(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--generate") return std::nullopt;
  return argv[2];
}

void generate(const CLI::App& program, const std::filesystem::path& folder) {
  const std::vector<Command> commands = commands_of(program);
  for (const Command& command : commands) {
    if (!command.is_other_program) write(folder / "man1" / (command.joined("-") + ".1"), page_of(command));
  }
  const Command& named = commands.front();
  write(folder / "bash" / named.joined("-"), bash_completion(commands));
  write(folder / "zsh" / ("_" + named.joined("_")), zsh_completion(commands));
  write(folder / "fish" / (named.joined("-") + ".fish"), fish_completion(commands));
}

}  // namespace wherry::manual
