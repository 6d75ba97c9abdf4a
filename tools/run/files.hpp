// SPDX-License-Identifier: Apache-2.0
//
// wherry run --files: what is set up before the program takes this one's place.
#pragma once

#include <string>

namespace wherry::tools {

/// Makes the program and those that it starts read files below the directories of WHERRY_FILES in place. Says on
/// standard error which files, or that all of `program`, the kernel serves. Throws Error if the library is not
/// installed.
void serve_files(const std::string& program);

}  // namespace wherry::tools
