// SPDX-License-Identifier: Apache-2.0
//
// libWherryROOT, if it is installed beside this program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wherry::tools {

/// PREFIX/lib/wherry/root, with the library in it, where this program is PREFIX/bin/wherry.
std::optional<std::filesystem::path> find_root_folder();

/// Makes ROOT, in the programs that this process starts or becomes, know wherry:// and find the library and its
/// headers.
void use_root_folder(const std::filesystem::path& folder);

/// ROOT opens a file with the option pmerge without asking any plugin, and crashes when its own server is not there
/// (6.40). Returns the first of these words that has it for a wherry:// URL, or none.
std::optional<std::string> merged_by_root(const std::vector<std::string>& words);

}  // namespace wherry::tools
