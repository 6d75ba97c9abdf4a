// SPDX-License-Identifier: Apache-2.0
// `wherry bench root`: which jobs there are, and which figures and tables they come to.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/campaign.hpp"
#include "bench/harness/options.hpp"
#include "bench/systems/root/job.hpp"

namespace wherry::bench::root {

void add_options(CLI::App& command, Options& options);

/// The jobs, without their systems: every number of workers at the middle size, every size at the first number of
/// workers, and the middle size with that number once more in threads and with the Higgs tree.
std::vector<Job> jobs(const Options& options);

/// "processes", "threads", "processes-higgs", "threads-higgs": the mode of a job's rows.
std::string mode_of(const Job& job);

/// All figures of one job and system.
void append_rows(std::vector<Row>& rows, const std::string& version, const Job& job, std::span<const Finding> findings);

std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances);

std::string tables(std::span<const Row> rows, const Options& options);

}  // namespace wherry::bench::root
