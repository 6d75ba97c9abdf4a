// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace wherry::tools {

/// Puts `value` before what the variable holds, a list with colons, unless it is there already.
void put_first(const char* variable, const std::string& value);

/// Where this program is PREFIX/bin/wherry: wherry in CMAKE_INSTALL_LIBDIR below PREFIX, or, as in a build tree,
/// PREFIX/lib/wherry. Empty if that cannot be told.
std::filesystem::path library_folder();

}  // namespace wherry::tools
