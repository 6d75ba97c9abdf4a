// SPDX-License-Identifier: Apache-2.0
// The figures of wherry-bench-mpi. Each is called on all ranks, checks every byte that it has received, or what was
// computed of it, and throws std::runtime_error for a wrong one. What it returns counts at rank 0.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace wherry::bench::mpi {

/// Metrics with their values.
using Found = std::vector<std::pair<std::string, double>>;

/// Ranks 0 and 1, neighbours on a ring of all, throw a message to and fro: half of a round trip. The others sleep.
Found latency(std::size_t bytes, double seconds);

/// Rank 0 sends windows of messages to rank 1, as osu_bw does: 64 messages up to 64 KiB, 4 above. The others sleep.
Found bandwidth(std::size_t bytes, double seconds);

/// Every rank exchanges messages of this size with both neighbours of each dimension of a periodic grid of all.
Found halo(int dimensions, std::size_t bytes, double seconds);

/// The sum over all ranks of `bytes` bytes of doubles.
Found allreduce(std::size_t bytes, double seconds);

/// One step of the heat equation on a periodic square of `bytes` bytes of doubles, in blocks on a 2-D grid of all
/// ranks.
Found heat(std::size_t bytes, double seconds);

/// A 2-D Fourier transform of a square of `bytes` bytes of complex doubles, in rows; MPI_Alltoallv transposes.
Found fft(std::size_t bytes, double seconds);

/// What all ranks together have now: in shared memory, and in all memory that no file backs, less what they had before
/// MPI_Init.
Found memory();

/// To be called before MPI_Init.
void note_memory_before();

}  // namespace wherry::bench::mpi
