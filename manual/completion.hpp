// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "manual/commands.hpp"

namespace wherry::manual {

// Each offers, after a command, its subcommands and options, and files where an argument or a value stands. `commands`
// is what commands_of() returns.
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);

}  // namespace wherry::manual
