// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "manual/commands.hpp"

namespace wherry::manual {

// Each completion offers the subcommands and options of a command, and files for an argument or a value. `commands` is
// the result of commands_of().
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);

}  // namespace wherry::manual
