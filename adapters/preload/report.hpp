// SPDX-License-Identifier: Apache-2.0
//
// WHERRY_FILES_REPORT: how the transfers of files below the directories were made, in a line when the process exits.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace wherry::preload {

enum class Route : std::uint8_t { in_place, host, kernel };

/// Reads the variable. Once, when the library is loaded.
void read_report_environment() noexcept;

namespace detail {
extern constinit bool reports;
}
inline bool reports() noexcept { return detail::reports; }

/// A transfer of a descriptor's file that returned this; nothing is counted of a failure.
void count_transfer(int fd, bool writes, Route route, ssize_t result) noexcept;
/// The pages of a read past the mount were in memory: a hit, which is the kernel's on the path `auto`.
void count_hit(int fd) noexcept;
/// The descriptor's number is another file's by now.
void forget_reported(int fd) noexcept;

}  // namespace wherry::preload
