// SPDX-License-Identifier: Apache-2.0
// What the figures of wherry-bench-mpi have in common: ranks, rounds against the clock, bytes that can be checked.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace wherry::bench::mpi {

/// A communicator of the program's own, freed with it.
class Communicator {
 public:
  /// Takes over what a creating call has made.
  explicit Communicator(MPI_Comm comm);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  [[nodiscard]] MPI_Comm get() const { return comm_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

/// All ranks in a periodic grid of that many dimensions, as MPI_Dims_create divides them.
MPI_Comm make_grid(int dimensions);

double now_ns();

/// Returns when all ranks have called it. It sleeps meanwhile: ranks that take no part in a figure leave the cores to
/// those that do.
void meet_quietly(MPI_Comm comm);

/// Runs `round(number)` on all ranks of the communicator until one call of its timed repetitions takes about `seconds`,
/// and returns what a round took there, in ns, at rank 0. Numbers go on from call to call.
double time_rounds(const Communicator& ranks, double seconds, const std::function<void(std::uint64_t)>& round);

/// Bytes that no other sender, place or message has.
void fill(std::span<std::byte> bytes, std::uint64_t salt);
/// Throws std::runtime_error if they are not what fill() made.
void check(std::span<const std::byte> bytes, std::uint64_t salt);

/// A length that MPI takes.
int count_of(std::size_t bytes);

}  // namespace wherry::bench::mpi
