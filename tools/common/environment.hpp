// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace wherry::tools {

/// Puts `value` before what the variable holds, a list with colons, unless it is there already.
void put_first(const char* variable, const std::string& value);

/// PREFIX/lib/wherry, where this program is PREFIX/bin/wherry. Empty if that cannot be told.
std::filesystem::path library_folder();

}  // namespace wherry::tools
