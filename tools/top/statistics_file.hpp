// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "top/reading.hpp"

namespace wherry::tools {

/// Reads the statistics page at `path`, an entry of /proc/PID/fd. Empty if the file cannot be opened, is not a
/// statistics page, has another version, or could shrink during the read. The read is safe whatever the page contains.
/// @param pid  the process's id in its own namespace; a page that was inherited through fork has another process's id,
///             and is not read
std::optional<ProcessReading> read_statistics_file(const std::string& path, std::uint64_t pid);

}  // namespace wherry::tools
