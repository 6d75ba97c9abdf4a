// SPDX-License-Identifier: Apache-2.0
//
// wherry run --files: what is set up before the program takes this one's place.
#pragma once

#include <string>

namespace wherry::tools {

/// Makes the program and those that it starts serve files below the directories of WHERRY_FILES by way of the card's
/// cache, of which this process becomes a client. Where there is no cache to be had, they run on the kernel's calls;
/// that, and that `program` cannot be seen, is said on standard error. Throws Error if the library is not installed.
void serve_files(const std::string& program);

}  // namespace wherry::tools
