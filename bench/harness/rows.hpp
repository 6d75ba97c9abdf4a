// SPDX-License-Identifier: Apache-2.0
// From samples to figures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/harness/report.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench {

/// One metric of one sample.
struct Figure {
  std::string metric;
  double value = 0;
};
using Figures = std::vector<Figure>;

/// What one sample of a system comes to. Latencies are gone then: a hundred thousand for each sample would not fit.
Figures figures_of(const System& system, const Sample& sample, const Outcome& outcome);

/// Adds a row for each metric that all samples of one system at one point have.
void append_rows(std::vector<Row>& rows, const std::string& bench, const System& system, const Sample& sample,
                 std::span<const Figures> samples);

/// The value below which `share` of the sorted values lie (nearest rank). Throws std::invalid_argument if there is
/// none.
double percentile(std::span<const double> sorted, double share);

}  // namespace wherry::bench
