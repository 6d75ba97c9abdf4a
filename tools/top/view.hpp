// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "top/rates.hpp"

namespace wherry::tools {

/// A summary line and a table. At most `lines` lines (0: all) of at most `columns` characters (0: any).
std::string top_text(const Reading& before, const Reading& now, std::size_t lines, std::size_t columns);

/// The ways of transfers of files, by process and class: what each took, and which is chosen.
std::string top_files_text(const Reading& now, std::size_t lines, std::size_t columns);

/// One JSON object in one line: what was read, and rates per second.
std::string top_json(const Reading& before, const Reading& now);

}  // namespace wherry::tools
