// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace wherry::tools {

/// The word as a shell has to read it.
std::string shell_quoted(const std::string& word);

/// Words separated by spaces, each quoted.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace wherry::tools
