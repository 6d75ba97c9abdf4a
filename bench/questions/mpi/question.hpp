// SPDX-License-Identifier: Apache-2.0
// `wherry bench mpi`: which jobs there are, and which figures and tables they come to.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/campaign.hpp"
#include "bench/harness/options.hpp"
#include "bench/systems/mpi/job.hpp"

namespace wherry::bench::mpi {

void add_options(CLI::App& command, Options& options);

/// What each launch does, in this order.
std::vector<Job> jobs(const Options& options);

/// Appends all figures of one system with `ranks` ranks. The mode of a row is the job's figure.
void append_rows(std::vector<Row>& rows, const System& system, std::uint32_t ranks, std::span<const Job> jobs,
                 std::span<const Finding> findings);

std::vector<Row> measure(const Options& options, std::span<System* const> systems, Circumstances& circumstances);

std::string tables(std::span<const Row> rows, const Options& options);

}  // namespace wherry::bench::mpi
