// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bench/systems/mpi/program/figures.hpp"
#include "bench/systems/mpi/program/world.hpp"

namespace wherry::bench::mpi {
namespace {

/// One of a rank's borders: what goes to a neighbour, and what comes from it.
struct Border {
  int neighbour = MPI_PROC_NULL;
  int tag = 0;       // of what goes out: both neighbours of a dimension may be one rank
  int back_tag = 0;  // of what comes in
  std::vector<std::byte> out{};
  std::vector<std::byte> in{};
};

std::uint64_t salt_of(int rank, int tag) {
  return (static_cast<std::uint64_t>(rank) << 8) + static_cast<std::uint64_t>(tag);
}

std::vector<Border> borders_of(const Communicator& grid, int dimensions, std::size_t bytes) {
  std::vector<Border> borders;
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int before = MPI_PROC_NULL;
    int after = MPI_PROC_NULL;
    MPI_Cart_shift(grid.get(), dimension, 1, &before, &after);
    borders.push_back({before, 2 * dimension, 2 * dimension + 1, {}, {}});
    borders.push_back({after, 2 * dimension + 1, 2 * dimension, {}, {}});
  }
  for (Border& border : borders) {
    border.out.resize(bytes);
    border.in.resize(bytes);
    fill(border.out, salt_of(grid.rank(), border.tag));
  }
  return borders;
}

/// All borders at once; each message begins with the number of the round.
void exchange(const Communicator& grid, std::vector<Border>& borders, std::uint64_t round) {
  std::vector<MPI_Request> requests;
  requests.reserve(2 * borders.size());
  for (Border& border : borders) {
    MPI_Irecv(border.in.data(), count_of(border.in.size()), MPI_BYTE, border.neighbour, border.back_tag, grid.get(),
              &requests.emplace_back());
  }
  for (Border& border : borders) {
    std::memcpy(border.out.data(), &round, sizeof round);
    MPI_Isend(border.out.data(), count_of(border.out.size()), MPI_BYTE, border.neighbour, border.tag, grid.get(),
              &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (const Border& border : borders) {
    if (std::memcmp(border.in.data(), &round, sizeof round) != 0) {
      throw std::runtime_error("a border of another round has come");
    }
  }
}

/// Puts what fill() made there in place of the round's number, on both sides, and compares all of it.
void verify(std::vector<Border>& borders) {
  for (Border& border : borders) {
    std::vector<std::byte> expected(border.in.size());
    fill(expected, salt_of(border.neighbour, border.back_tag));
    std::memcpy(border.in.data(), expected.data(), sizeof(std::uint64_t));
    check(border.in, salt_of(border.neighbour, border.back_tag));
  }
}

}  // namespace

Found halo(int dimensions, std::size_t bytes, double seconds) {
  if (bytes < sizeof(std::uint64_t)) throw std::runtime_error("a border has at least 8 bytes");
  const Communicator grid(make_grid(dimensions));
  std::vector<Border> borders = borders_of(grid, dimensions, bytes);
  const double ns = time_rounds(grid, seconds, [&](std::uint64_t round) { exchange(grid, borders, round); });
  verify(borders);
  return {{"ns_mean", ns}};
}

}  // namespace wherry::bench::mpi
