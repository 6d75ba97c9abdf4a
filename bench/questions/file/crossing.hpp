// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "bench/harness/report.hpp"

namespace wherry::bench::file {

/// Which unit is the first that `large` reads or writes faster than `small`, as it does the next longer one, between
/// the measured sizes by straight lines on logarithmic axes: a line of text. Empty if one of them was not measured at
/// two sizes.
std::string crossing(std::span<const Row> rows, const std::string& mode, std::uint32_t processes,
                     const std::string& small, const std::string& large);

/// The seed's shape: the cache is faster for small units, and the host's server for large ones. A line for each pair of
/// systems that was measured; they are those of bench/report/plots.py, which draws them.
std::string crossings(std::span<const Row> rows, const std::string& mode, std::uint32_t processes);

}  // namespace wherry::bench::file
