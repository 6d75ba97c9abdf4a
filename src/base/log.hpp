// SPDX-License-Identifier: Apache-2.0
// Log lines on standard error, only for events that cannot be returned to a caller. Errors for a caller are an Error or
// a Result, and are not logged.
#pragma once

#include <cstdint>
#include <string_view>

namespace wherry::log {

enum class Level : std::uint8_t { error, warning, info, debug };

/// Returns the current level: WHERRY_LOG at the first use, or the last `set_level`. An invalid WHERRY_LOG counts as the
/// default: logging never fails.
Level level() noexcept;
void set_level(Level level) noexcept;

/// Whether a line of that level would be written. Check it before making an expensive text.
inline bool enabled(Level wanted) noexcept { return wanted <= level(); }

/// Writes "wherry[PID] node N LEVEL: TEXT" as one line by one system call, so that lines of many processes do not mix.
/// Does nothing if the level is not enabled. Never throws, keeps errno. From any thread.
void write(Level level, std::string_view text) noexcept;

}  // namespace wherry::log
