// SPDX-License-Identifier: Apache-2.0
//
// libWherryROOT, if it is installed beside this program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wherry::tools {

/// The folder of the library: PREFIX/lib/wherry/root, if this program is PREFIX/bin/wherry. Empty: not installed.
std::optional<std::filesystem::path> find_root_folder();

/// Makes ROOT support wherry:// in the programs that this process starts or executes, and find the library and its
/// headers.
void use_root_folder(const std::filesystem::path& folder);

/// Returns the first word with the option pmerge on a wherry:// URL, or none. ROOT opens a file with that option
/// without a plugin, and crashes if its own server does not run (6.40).
std::optional<std::string> merged_by_root(const std::vector<std::string>& words);

}  // namespace wherry::tools
