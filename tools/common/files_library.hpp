// SPDX-License-Identifier: Apache-2.0
//
// The library that serves the file calls of unmodified programs (adapters/preload).
#pragma once

#include <filesystem>
#include <string>

namespace wherry::tools {

/// The path of the library: PREFIX/lib/wherry/files/libwherry-preload.so, if this program is PREFIX/bin/wherry.
std::filesystem::path files_library_place();

/// Converts `directories`, separated by commas or colons, to the form of WHERRY_FILES: absolute and without symbolic
/// links. Throws Error if one of them is not a directory.
std::string directory_list(const std::string& directories);

/// Makes the programs that this process starts or executes serve files below the directories of WHERRY_FILES. Throws
/// Error if the library is not installed.
void use_files_library();

}  // namespace wherry::tools
