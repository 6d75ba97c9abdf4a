// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/mpi/job.hpp"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

namespace wherry::bench::mpi {

std::string to_line(const Job& job) { return fmt::format("{} {} {}", job.figure, job.bytes, job.seconds); }

Measures measures_in(const std::string& line) {
  std::istringstream words(line);
  Measures measures;
  std::string metric;
  for (double value = 0; words >> metric >> value; metric.clear()) {
    if (!(value > 0)) throw std::runtime_error(fmt::format("{} of {} makes no sense", metric, value));
    measures.emplace_back(metric, value);
  }
  if (measures.empty() || !metric.empty()) throw std::runtime_error(fmt::format("no figures: '{:.80}'", line));
  return measures;
}

}  // namespace wherry::bench::mpi
