// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>

#include "collect/destination.hpp"

namespace wherry::tools {

/// Makes a symbolic link, and replaces a file or symbolic link of that name. The shipper chooses the target; the
/// collector never follows the link. Throws Refusal.
void store_symlink(const Place& place, const std::string& target, timespec mtime);

}  // namespace wherry::tools
