// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace wherry::tools {

/// Prepends `value` to a variable that is a list with colons, unless the list has it already.
void put_first(const char* variable, const std::string& value);

/// The folder of Wherry's libraries, if this program is PREFIX/bin/wherry: wherry in CMAKE_INSTALL_LIBDIR below PREFIX;
/// or PREFIX/lib/wherry, as in a build tree. Empty if the program's path is unknown.
std::filesystem::path library_folder();

}  // namespace wherry::tools
