// SPDX-License-Identifier: Apache-2.0
// `wherry bench connect`: what a connection costs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/harness/campaign.hpp"

namespace wherry::bench {

std::vector<Row> measure_connections(const Options& options, std::span<System* const> systems,
                                     Circumstances& circumstances);

std::string connect_tables(std::span<const Row> rows, const Options& options);

}  // namespace wherry::bench
