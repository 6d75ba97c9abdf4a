// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace wherry::preload {

/// For variables that each process writes at its start: places them beside data that the loader has written. The first
/// write to a page costs a process 1 us.
#define WHERRY_START_DATA [[gnu::section(".data.start")]] constinit

/// Copies a text of the environment, as it is when the process starts, and terminates it with a null byte. Returns null
/// if it does not fit. The copies are adjacent.
char* keep_text(std::string_view text) noexcept;

}  // namespace wherry::preload
