// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "top/rates.hpp"

namespace wherry::tools {

/// Returns a summary line and a table: at most `lines` lines (0: all) of at most `columns` characters (0: any).
std::string top_text(const Reading& before, const Reading& now, std::size_t lines, std::size_t columns);

/// Returns the ways of file transfers, by process and class: the cost of each, and the chosen one.
std::string top_files_text(const Reading& now, std::size_t lines, std::size_t columns);

/// Returns one JSON object in one line: the values read, and rates per second.
std::string top_json(const Reading& before, const Reading& now);

}  // namespace wherry::tools
