// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "manual/commands.hpp"

namespace wherry::manual {

/// The man page of one command, in the macros of man(7).
std::string page_of(const Command& command);

}  // namespace wherry::manual
