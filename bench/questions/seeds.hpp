// SPDX-License-Identifier: Apache-2.0
// `wherry bench seeds`: the five publications that Wherry goes back to. For each, its figures as published, and the
// same question asked of this machine. docs/seeds.md names the sources.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/campaign.hpp"
#include "bench/harness/options.hpp"

namespace wherry::bench::seeds {

void add_options(CLI::App& command, Options& options);

/// Whether a system, made for `question` or for any (empty), is part of one of the five.
bool chooses(const std::string& system, const std::string& question);

/// Asks the questions one after the other. A row has the question that was asked as its bench.
std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances);

std::string tables(std::span<const Row> rows, const Options& options);

}  // namespace wherry::bench::seeds
