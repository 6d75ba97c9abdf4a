// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/harness/report.hpp"

namespace wherry::bench {

/// Throws std::invalid_argument if the file named by an option cannot be written, and says why.
void check_writable(const char* option, const std::string& file);

/// Throws std::invalid_argument if `draw` could not draw into that file: no script, no Python, no matplotlib, or no
/// place for the file. Takes less than a second.
void check_drawing(const std::string& file);

/// Has the report's script draw the figures into a file. The script is found in the folder that WHERRY_BENCH_REPORT
/// names, where the program is installed, or in the checkout it was built in. Throws std::runtime_error when there is
/// no script, no Python or no matplotlib.
void draw(const std::string& file, const std::vector<Row>& rows, const nlohmann::json& run);

}  // namespace wherry::bench
