// SPDX-License-Identifier: Apache-2.0
// The little that the library says on its own: a line on standard error for what no caller can be told. What a caller
// can be told is an Error or a Result, and is not logged.
#pragma once

#include <cstdint>
#include <string_view>

namespace wherry::log {

enum class Level : std::uint8_t { error, warning, info, debug };

/// The level in force: WHERRY_LOG as it was at the first use, or what `set_level` said since. An invalid WHERRY_LOG
/// counts as the default: logging never fails.
Level level() noexcept;
void set_level(Level level) noexcept;

/// True if a line of that level would be written: ask before putting together a text that costs something.
inline bool enabled(Level wanted) noexcept { return wanted <= level(); }

/// Writes "wherry[PID] node N LEVEL: TEXT" as one line by one system call, so that lines of many processes do not mix.
/// Nothing if the level is not enabled. Never throws, keeps errno; callable from any thread.
void write(Level level, std::string_view text) noexcept;

}  // namespace wherry::log
