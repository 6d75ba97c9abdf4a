// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/mpi/program/world.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

namespace wherry::bench::mpi {
namespace {

/// The next of splitmix64.
std::uint64_t next(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

/// Calls `visit(index, byte)` for each index of a buffer of `bytes` bytes, with the byte that belongs there.
template <class Visit>
void each_byte(std::size_t bytes, std::uint64_t salt, const Visit& visit) {
  std::uint64_t state = salt;
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i % sizeof word == 0) word = next(state);
    visit(i, static_cast<std::byte>(word >> (8 * (i % sizeof word))));
  }
}

}  // namespace

Communicator::Communicator(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

Communicator::~Communicator() {
  // After a failure the job is aborted: the other ranks would not come to this call, which waits for them.
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
}

MPI_Comm make_grid(int dimensions) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::array<int, 3> lengths{};
  const std::array<int, 3> periodic{1, 1, 1};
  MPI_Dims_create(size, dimensions, lengths.data());
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, lengths.data(), periodic.data(), 0, &grid);
  return grid;
}

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void meet_quietly(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

double time_rounds(const Communicator& ranks, double seconds, const std::function<void(std::uint64_t)>& round) {
  std::uint64_t done = 0;
  const auto repeat = [&](std::uint64_t rounds) {
    MPI_Barrier(ranks.get());
    const double start = now_ns();
    for (std::uint64_t i = 0; i < rounds; ++i) round(done + i);
    done += rounds;
    return now_ns() - start;
  };
  std::uint64_t rounds = 1;
  // Doubled until they take a quarter of the time, which warms up too; then as many as fill it.
  for (bool last = false;;) {
    const double elapsed = repeat(rounds);
    if (last) return elapsed / static_cast<double>(rounds);
    std::array<std::uint64_t, 2> plan{rounds * 2, 0};
    if (elapsed >= seconds * 1e9 / 4) {
      plan = {
          std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(rounds) * seconds * 1e9 / elapsed)),
          1};
    }
    MPI_Bcast(plan.data(), 2, MPI_UINT64_T, 0, ranks.get());
    rounds = plan[0];
    last = plan[1] != 0;
  }
}

void fill(std::span<std::byte> bytes, std::uint64_t salt) {
  each_byte(bytes.size(), salt, [&](std::size_t i, std::byte byte) { bytes[i] = byte; });
}

void check(std::span<const std::byte> bytes, std::uint64_t salt) {
  each_byte(bytes.size(), salt, [&](std::size_t i, std::byte byte) {
    if (bytes[i] != byte) {
      throw std::runtime_error("byte " + std::to_string(i) + " of a message of " + std::to_string(bytes.size()) +
                               " is wrong");
    }
  });
}

int count_of(std::size_t bytes) {
  if (bytes > INT_MAX) throw std::runtime_error("a message of more than 2 GiB");
  return static_cast<int>(bytes);
}

}  // namespace wherry::bench::mpi
