// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "top/reading.hpp"

namespace wherry::tools {

/// Reads the statistics page at `path`, an entry of /proc/PID/fd. Empty if it cannot be opened, is not such a page, is
/// of another version, or could shrink while it is read. Whatever stands in it, reading it is safe.
/// @param pid  the process's id as itself knows it (in its own namespace): the page of another process, inherited
///             through fork, is not this one's
std::optional<ProcessReading> read_statistics_file(const std::string& path, std::uint64_t pid);

}  // namespace wherry::tools
