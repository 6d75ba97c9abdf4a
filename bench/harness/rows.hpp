// SPDX-License-Identifier: Apache-2.0
// From samples to figures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/harness/report.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench {

/// Adds a row for each metric that the samples of one system at one point give.
void append_rows(std::vector<Row>& rows, const std::string& bench, const System& system, const Sample& sample,
                 std::span<const Outcome> outcomes);

/// The value below which `share` of the sorted values lie (nearest rank). Throws std::invalid_argument if there is
/// none.
double percentile(std::span<const double> sorted, double share);

}  // namespace wherry::bench
