// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace wherry::preload {

/// For variables that each process writes when it starts: they lie beside data that the loader has written. Each page
/// that is written first costs a process 1 us.
#define WHERRY_START_DATA [[gnu::section(".data.start")]] constinit

/// Copies a text of the environment, to be kept as it is when the process starts, and ends it with a null byte. Null:
/// it does not fit. The copies stand side by side.
char* keep_text(std::string_view text) noexcept;

}  // namespace wherry::preload
