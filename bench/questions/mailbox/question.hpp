// SPDX-License-Identifier: Apache-2.0
// `wherry bench mailbox`: which points there are, and which figures and tables they come to.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/campaign.hpp"
#include "bench/harness/options.hpp"

namespace wherry::bench::mailbox {

void add_options(CLI::App& command, Options& options);

/// Bandwidth and one way for all sizes, in all modes.
std::vector<Point> points(const Options& options);

/// Sets the number started of rows whose system's name ends in it, and adds what that costs: for all sizes what share
/// of the bandwidth with the fewest is left.
void complete(std::vector<Row>& rows);

/// The rows of the smallest message as what one costs the receiver.
std::vector<Row> receive_costs(std::span<const Row> rows);

std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances);

std::string tables(std::span<const Row> rows, const Options& options);

}  // namespace wherry::bench::mailbox
