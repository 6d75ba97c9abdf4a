// SPDX-License-Identifier: Apache-2.0
// What `wherry bench mpi` asks of its program, and what it is told: words and numbers of one line each.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace wherry::bench::mpi {

/// One figure of one size.
struct Job {
  std::string figure{};     ///< as bench/systems/mpi/program/main.cc names it
  std::uint64_t bytes = 0;  ///< of a message, or of the whole field of an application; 0: it has no size
  double seconds = 0;       ///< for its rounds, at most; roughly
};

/// Metrics with their values.
using Measures = std::vector<std::pair<std::string, double>>;

/// What one launch came to.
struct Finding {
  std::vector<Measures> measures{};  ///< of each job
  double reaped_cpu_seconds = 0;     ///< of processes that the kernel no longer tells of: none, launchers wait
};

std::string to_line(const Job& job);
/// Throws std::runtime_error for what is not a list of metrics with values above 0.
Measures measures_in(const std::string& line);

}  // namespace wherry::bench::mpi
