// SPDX-License-Identifier: Apache-2.0
//
// Asks for the neighbours of a communicator without a topology, with each error handler; and of a grid, of which MPI
// refuses one dimension. Prints what is wrong.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <optional>

#include "adapters/mpi/topology/errors_return.hpp"
#include "adapters/mpi/topology/list.hpp"
#include "adapters/mpi/topology/neighbours.hpp"

namespace {

using wherry::topology::ErrorsReturn;
using wherry::topology::List;
using wherry::topology::Mpi;
using wherry::topology::Neighbour;
using wherry::topology::Topology;
using wherry::topology::Word;

int errors = 0;
int times_programs_handler_was_called = 0;

void require(bool holds, const char* what) {
  if (holds) return;
  std::puts(what);
  ++errors;
}

void programs_handler(MPI_Comm* /*communicator*/, int* /*error*/, ...) { ++times_programs_handler_was_called; }

Word word(MPI_Comm handle) {
  Word value = 0;
  std::memcpy(&value, &handle, sizeof handle);
  return value;
}

void ask(const Mpi& mpi, MPI_Errhandler handler) {
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  MPI_Comm_set_errhandler(communicator, handler);
  for (const Topology kind : {Topology::grid, Topology::graph, Topology::edges}) {
    const ErrorsReturn errors_return(mpi, word(communicator));
    List<Neighbour> neighbours;
    require(!wherry::topology::neighbours_of(mpi, word(communicator), kind, neighbours),
            "there are neighbours without a topology");
  }
  MPI_Errhandler after = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(communicator, &after);
  require(after == handler, "the error handler is another one");
  MPI_Errhandler_free(&after);
  MPI_Comm_free(&communicator);
}

int (*shift_of_mpi)(Word, int, int, int*, int*) = nullptr;

int shift_along_the_first_dimension(Word communicator, int dimension, int steps, int* source, int* destination) {
  return dimension == 0 ? shift_of_mpi(communicator, dimension, steps, source, destination) : MPI_ERR_OTHER;
}

void ask_for_half_a_grid(Mpi mpi) {
  int processes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const int sizes[] = {processes, 1};
  const int periods[] = {1, 1};
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
  List<Neighbour> neighbours;
  require(wherry::topology::neighbours_of(mpi, word(grid), Topology::grid, neighbours), "a grid has no neighbours");
  require(neighbours.elements().size() == 1, "a ring of two has another number of neighbours");
  shift_of_mpi = mpi.cart_shift;
  mpi.cart_shift = shift_along_the_first_dimension;
  List<Neighbour> half;
  require(!wherry::topology::neighbours_of(mpi, word(grid), Topology::grid, half), "half of the neighbours are enough");
  MPI_Comm_free(&grid);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::optional<Mpi> mpi = Mpi::of_this_process();
  if (!mpi) {
    std::puts("no MPI library was recognised");
    return 1;
  }
  MPI_Errhandler own = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(programs_handler, &own);
  for (MPI_Errhandler handler : {static_cast<MPI_Errhandler>(MPI_ERRORS_ARE_FATAL), MPI_ERRORS_RETURN, own}) {
    ask(*mpi, handler);
  }
  ask_for_half_a_grid(*mpi);
  require(times_programs_handler_was_called == 0, "the program's error handler was called");
  MPI_Errhandler_free(&own);
  MPI_Finalize();
  return errors;
}
