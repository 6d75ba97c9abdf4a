// SPDX-License-Identifier: Apache-2.0
//
// wherry key: makes the key with which processes of different hosts authenticate each other.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/key_file.hpp"
#include "base/printable.hpp"
#include "commands.hpp"

namespace wherry::tools {
namespace {

int make_key(const std::string& file) {
  make_key_file(file);
  const std::string shown = printable(std::filesystem::absolute(file).string());
  fmt::print("made {}\nCopy it to each host of the job with its mode 0600, and set there: export WHERRY_KEY={}\n",
             shown, shown);
  return 0;
}

}  // namespace

Action add_key(CLI::App& command) {
  const auto file = std::make_shared<std::string>();
  command.footer(
      "Processes of different hosts connect only if both hold the same key. The key is never sent over the network. "
      "It\n"
      "authenticates the connection, not the data: connections between hosts are not encrypted.\n"
      "Exit status: 0 if the file was made; 1 if not, such as when it exists; 2 if the command line is wrong.");
  command.add_option("file", *file, "The file to create, with mode 0600; an existing file is not overwritten")
      ->required();
  return [file] { return make_key(*file); };
}

}  // namespace wherry::tools
