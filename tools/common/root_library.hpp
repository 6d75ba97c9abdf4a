// SPDX-License-Identifier: Apache-2.0
//
// libWherryROOT, if it is installed beside this program.
#pragma once

#include <filesystem>
#include <optional>

namespace wherry::tools {

/// PREFIX/lib/wherry/root, with the library in it, where this program is PREFIX/bin/wherry.
std::optional<std::filesystem::path> find_root_folder();

/// Makes ROOT, in the programs that this process starts or becomes, know wherry:// and find the library and its
/// headers.
void use_root_folder(const std::filesystem::path& folder);

}  // namespace wherry::tools
