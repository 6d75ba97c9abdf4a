// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>

#include "collect/destination.hpp"

namespace wherry::tools {

/// Makes a symbolic link, replacing a file or symbolic link of that name. What it points to is the shipper's business:
/// the collector never follows it. Throws Refusal.
void store_symlink(const Place& place, const std::string& target, timespec mtime);

}  // namespace wherry::tools
