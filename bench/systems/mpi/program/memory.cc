// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <mpi.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>

#include "bench/systems/mpi/program/figures.hpp"

namespace wherry::bench::mpi {
namespace {

/// Proportional set sizes of this process, in bytes: what a page costs is divided among those that map it.
struct Sizes {
  double anonymous = 0;
  double shared = 0;
};

Sizes sizes_now() {
  Sizes sizes;
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string line; std::getline(lines, line);) {
    const auto read = [&](std::string_view name, double& bytes) {
      if (line.starts_with(name)) bytes = 1024 * std::stod(line.substr(name.size()));
    };
    read("Pss_Anon:", sizes.anonymous);
    read("Pss_Shmem:", sizes.shared);
  }
  return sizes;
}

Sizes before;

}  // namespace

void note_memory_before() { before = sizes_now(); }

Found memory() {
  malloc_trim(0);  // What earlier figures have freed is not the transport's.
  // Each looks when all are still there: what is shared is divided among them.
  MPI_Barrier(MPI_COMM_WORLD);
  const Sizes now = sizes_now();
  const std::array<double, 2> mine{now.shared - before.shared,
                                   now.shared - before.shared + now.anonymous - before.anonymous};
  std::array<double, 2> all{};
  MPI_Reduce(mine.data(), all.data(), 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return {{"shared_bytes", all[0]}, {"memory_bytes", all[1]}, {"memory_bytes_per_rank", all[1] / size}};
}

}  // namespace wherry::bench::mpi
