// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bench/systems/mpi/program/figures.hpp"
#include "bench/systems/mpi/program/world.hpp"

namespace wherry::bench::mpi {
namespace {

/// What rank `rank` adds at that place: small whole numbers, whose sum is exact in any order.
double part_of(int rank, std::size_t place) { return static_cast<double>(rank) + static_cast<double>(place % 1024); }

}  // namespace

Found allreduce(std::size_t bytes, double seconds) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  const Communicator ranks(copy);
  std::vector<double> mine(std::max<std::size_t>(1, bytes / sizeof(double)));
  std::vector<double> sum(mine.size());
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = part_of(ranks.rank(), i);
  const double ns = time_rounds(ranks, seconds, [&](std::uint64_t) {
    MPI_Allreduce(mine.data(), sum.data(), static_cast<int>(sum.size()), MPI_DOUBLE, MPI_SUM, ranks.get());
  });
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double expected = ranks.size() * part_of(0, i) + ranks.size() * (ranks.size() - 1) / 2.0;
    if (sum[i] != expected) throw std::runtime_error("MPI_Allreduce has not added up what it was given");
  }
  return {{"ns_mean", ns}};
}

}  // namespace wherry::bench::mpi
