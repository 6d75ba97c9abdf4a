// SPDX-License-Identifier: Apache-2.0
//
// WHERRY_FILES_REPORT: prints a line when the process exits, which says how the transfers of files below the
// directories were made.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace wherry::preload {

enum class Route : std::uint8_t { in_place, host, kernel, ring };

/// Reads the variable. To be called once, when the library is loaded.
void read_report_environment() noexcept;

namespace detail {
extern constinit bool reports;
}
inline bool reports() noexcept { return detail::reports; }

/// Whether all pages of a read were in memory.
enum class Hit : std::uint8_t { not_checked, no, yes };

/// Counts a transfer of a descriptor's file by its result. Failures are not counted.
void count_transfer(int fd, bool writes, Route route, ssize_t result, Hit hit = Hit::not_checked) noexcept;
/// To be called in a forked child: the transfers so far are in its parent's line.
void begin_report_anew() noexcept;
/// To be called when the descriptor's number is another file's.
void forget_reported(int fd) noexcept;

}  // namespace wherry::preload
