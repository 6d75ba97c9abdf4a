// SPDX-License-Identifier: Apache-2.0
//
// The library that serves the file calls of programs which know nothing of Wherry (adapters/preload).
#pragma once

#include <filesystem>
#include <string>

namespace wherry::tools {

/// PREFIX/lib/wherry/files/libwherry-preload.so, where this program is PREFIX/bin/wherry.
std::filesystem::path files_library_place();

/// `directories`, separated by commas or colons, as WHERRY_FILES has them: absolute and without symbolic links. Throws
/// Error if one of them is no directory.
std::string directory_list(const std::string& directories);

/// Makes the programs that this process starts or becomes serve files below the directories of WHERRY_FILES. Throws
/// Error if the library is not installed.
void use_files_library();

}  // namespace wherry::tools
