// SPDX-License-Identifier: Apache-2.0
//
// Generates man pages and shell completions of a program from its command line, so that they match --help.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

namespace wherry::manual {

/// The folder of the command line `PROGRAM --generate FOLDER`, which the build uses and --help does not show.
std::optional<std::filesystem::path> asked_for(int argc, char** argv);

/// Writes man1/NAME.1 for `program` and each of its subcommands, and bash/NAME, zsh/_NAME and fish/NAME.fish.
/// Throws std::runtime_error if a file cannot be written.
void generate(const CLI::App& program, const std::filesystem::path& folder);

}  // namespace wherry::manual
