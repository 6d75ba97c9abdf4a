// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace wherry::tools {

/// Returns the word, quoted for a shell if necessary.
std::string shell_quoted(const std::string& word);

/// Returns the words, each quoted, separated by spaces.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace wherry::tools
