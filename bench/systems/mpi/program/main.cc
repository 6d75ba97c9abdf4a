// SPDX-License-Identifier: Apache-2.0
//
// The MPI program that `wherry bench mpi` starts with the launcher of each MPI. It does not link Wherry's library.
// bench/systems/programs/README.md has the lines that rank 0 and `wherry bench` exchange, but for the question: `sample
// FIGURE BYTES SECONDS`, and `done METRIC VALUE ...`.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <exception>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/systems/mpi/program/figures.hpp"

namespace wherry::bench::mpi {
namespace {

struct Figure {
  const char* name;
  Found (*measure)(std::size_t bytes, double seconds);
};

const Figure kFigures[] = {
    {"latency", latency},
    {"bandwidth", bandwidth},
    {"halo-1", [](std::size_t bytes, double seconds) { return halo(1, bytes, seconds); }},
    {"halo-2", [](std::size_t bytes, double seconds) { return halo(2, bytes, seconds); }},
    {"halo-3", [](std::size_t bytes, double seconds) { return halo(3, bytes, seconds); }},
    {"allreduce", allreduce},
    {"heat", heat},
    {"fft", fft},
    {"memory", [](std::size_t, double) { return memory(); }},
};

/// What all ranks do next.
struct Order {
  std::uint64_t figure = std::size(kFigures);  // That many: nothing, the end.
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// The next order, from `wherry bench`. Its pipe's end is not relied on: not every launcher passes that on.
Order read_order() {
  std::string line;
  if (!std::getline(std::cin, line) || line == "end") return {};
  std::istringstream words(line);
  std::string sample;
  std::string figure;
  Order order;
  words >> sample >> figure >> order.bytes >> order.seconds;
  for (order.figure = 0; order.figure < std::size(kFigures); ++order.figure) {
    if (words && sample == "sample" && figure == kFigures[order.figure].name) return order;
  }
  throw std::runtime_error("no order: " + line);
}

/// A broadcast that does not spin: ranks that wait for their orders leave the cores to those that work.
void broadcast_quietly(Order& order) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&order, sizeof order, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void introduce(int rank, int size) {
  std::uint64_t pid = static_cast<std::uint64_t>(getpid());
  std::vector<std::uint64_t> pids(static_cast<std::size_t>(size));
  MPI_Gather(&pid, 1, MPI_UINT64_T, pids.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string version(text.data());
  std::cout << "processes";
  for (const std::uint64_t one : pids) std::cout << ' ' << one;
  std::cout << "\nversion " << version.substr(0, version.find_first_of("\n,")) << '\n' << std::flush;
}

/// Two ranks have a core each; more of them go where the kernel puts them.
void pin(int rank, int size) {
  cpu_set_t allowed;
  if (size != 2 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != rank) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    sched_setaffinity(0, sizeof own, &own);
    return;
  }
}

void serve(int rank) {
  while (true) {
    Order order = rank == 0 ? read_order() : Order{};
    broadcast_quietly(order);
    if (order.figure >= std::size(kFigures)) return;
    const Found found = kFigures[order.figure].measure(order.bytes, order.seconds);
    if (rank != 0) continue;
    std::cout << "done";
    for (const auto& [metric, value] : found) std::cout << ' ' << metric << ' ' << value;
    std::cout << '\n' << std::flush;
  }
}

}  // namespace
}  // namespace wherry::bench::mpi

int main(int argc, char** argv) {
  using namespace wherry::bench::mpi;
  note_memory_before();
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  try {
    pin(rank, size);
    introduce(rank, size);
    serve(rank);
  } catch (const std::exception& error) {
    std::cerr << "rank " << rank << ": " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
