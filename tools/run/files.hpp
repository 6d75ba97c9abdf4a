// SPDX-License-Identifier: Apache-2.0
//
// wherry run --files: the setup before the program replaces this process.
#pragma once

#include <string>

namespace wherry::tools {

/// Makes the program, and the programs that it starts, read files below the directories of WHERRY_FILES in place.
/// Prints to standard error which files are served by the kernel instead, or that all files of `program` are. Throws
/// Error if the library is not installed.
void serve_files(const std::string& program);

}  // namespace wherry::tools
