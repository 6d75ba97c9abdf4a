// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/harness/report.hpp"

namespace wherry::tools {

/// Has the report's script draw the figures into a file. The script is found in the folder that WHERRY_BENCH_REPORT
/// names, where the program is installed, or in the checkout it was built in. Throws std::runtime_error when there is
/// no script, no Python or no matplotlib.
void draw(const std::string& file, const std::vector<bench::Row>& rows, const nlohmann::json& run);

}  // namespace wherry::tools
