// SPDX-License-Identifier: Apache-2.0
//
// Compares what adapters/mpi/topology/ says of an MPI's binary interface with that MPI's own mpi.h. Prints what
// differs.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <optional>

#include "adapters/mpi/topology/mpi.hpp"

namespace {

using wherry::topology::Mpi;
using wherry::topology::Word;

int differences = 0;

void compare(const char* what, Word ours, Word header) {
  if (ours == header) return;
  std::printf("%s is %#lx, and %#lx in mpi.h\n", what, ours, header);
  ++differences;
}

template <class Handle>
Word word(Handle handle) {
  Word value = 0;
  static_assert(sizeof handle <= sizeof value);
  std::memcpy(&value, &handle, sizeof handle);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::optional<Mpi> mpi = Mpi::of_this_process();
  if (!mpi) {
    std::puts("no MPI library was recognised");
    return 1;
  }
  compare("sizeof(MPI_Comm)", mpi->interface().handle_bytes, sizeof(MPI_Comm));
  compare("MPI_COMM_NULL is null", static_cast<Word>(mpi->is_null(word(MPI_COMM_NULL))), 1);
  compare("MPI_COMM_WORLD is null", static_cast<Word>(mpi->is_null(word(MPI_COMM_WORLD))), 0);
  compare("MPI_BYTE", mpi->byte(), word(MPI_BYTE));
  compare("MPI_ERRORS_RETURN", mpi->errors_return(), word(MPI_ERRORS_RETURN));
  compare("MPI_BAND", mpi->bits_of_all(), word(MPI_BAND));
  compare("MPI_PROC_NULL", static_cast<Word>(mpi->interface().no_process), static_cast<Word>(MPI_PROC_NULL));
  compare("MPI_SUCCESS", 0, MPI_SUCCESS);
  const MPI_Comm world = MPI_COMM_WORLD;
  compare("MPI_COMM_WORLD", mpi->world(), word(world));
  compare("MPI_COMM_WORLD in memory", mpi->handle_at(&world), word(world));
#ifdef MPI_ABI_VERSION
  compare("of Fortran", mpi->from_fortran(MPI_Comm_toint(world)), word(world));
#else
  compare("of Fortran", mpi->from_fortran(MPI_Comm_c2f(world)), word(world));
#endif
  MPI_Finalize();
  return differences;
}
