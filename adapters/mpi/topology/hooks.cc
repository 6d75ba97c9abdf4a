// SPDX-License-Identifier: Apache-2.0
//
// Wrappers of the calls that make a communicator with a topology. Programs find them before MPI's own: by the C names,
// and by those that Fortran compilers make of them for mpif.h and the modules mpi (NAME_) and mpi_f08 (NAME_f08_). If a
// Fortran binding calls the C name, only the outer call declares.
#include <dlfcn.h>

#include <cstdlib>

#include "declaration.hpp"
#include "mpi.hpp"
#include "neighbours.hpp"

namespace wherry::topology {
namespace {

/// The function that the program would call without this library, perhaps a tool's. It exists, or the program could not
/// have been linked.
template <class Function>
Function* next(const char* name) noexcept {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    const auto mpi = Mpi::of_this_process();
    if (mpi) found = mpi->function(name);
  }
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

void declare_unless_null(const Mpi& mpi, Word communicator, Topology kind) noexcept {
  if (!mpi.is_null(communicator)) declare(mpi, communicator, kind);
}

template <class... Words>
int make(Topology kind, const char* name, const void* made, Words... words) noexcept {
  auto* const function = next<int(Words...)>(name);
  ++calls_in_progress;
  const int error = function(words...);
  --calls_in_progress;
  if (error != kSuccess || calls_in_progress != 0) return error;
  if (const auto mpi = Mpi::of_this_process()) declare_unless_null(*mpi, mpi->handle_at(made), kind);
  return error;
}

/// Fortran passes everything by reference. With mpi_f08 `error` may be null.
template <class... Words>
void make_fortran(Topology kind, const char* name, const int* made, int* error, Words... words) noexcept {
  int own_error = kSuccess;
  if (error == nullptr) error = &own_error;
  auto* const function = next<void(Words..., const int*, int*)>(name);
  ++calls_in_progress;
  function(words..., made, error);
  --calls_in_progress;
  if (*error != kSuccess || calls_in_progress != 0) return;
  if (const auto mpi = Mpi::of_this_process()) declare_unless_null(*mpi, mpi->from_fortran(*made), kind);
}

}  // namespace
}  // namespace wherry::topology

using wherry::topology::make;
using wherry::topology::make_fortran;
using wherry::topology::Topology;
using wherry::topology::Word;

#define WHERRY_HOOK extern "C" __attribute__((visibility("default")))

// NOLINTBEGIN(readability-identifier-naming)
WHERRY_HOOK int MPI_Cart_create(Word old, Word dimensions, Word sizes, Word periods, Word reorder, void* made) {
  return make(Topology::grid, "MPI_Cart_create", made, old, dimensions, sizes, periods, reorder, made);
}

WHERRY_HOOK int MPI_Cart_sub(Word old, Word kept, void* made) {
  return make(Topology::grid, "MPI_Cart_sub", made, old, kept, made);
}

WHERRY_HOOK int MPI_Graph_create(Word old, Word nodes, Word index, Word edges, Word reorder, void* made) {
  return make(Topology::graph, "MPI_Graph_create", made, old, nodes, index, edges, reorder, made);
}

WHERRY_HOOK int MPI_Dist_graph_create(Word old, Word count, Word sources, Word degrees, Word destinations, Word weights,
                                      Word info, Word reorder, void* made) {
  return make(Topology::edges, "MPI_Dist_graph_create", made, old, count, sources, degrees, destinations, weights, info,
              reorder, made);
}

WHERRY_HOOK int MPI_Dist_graph_create_adjacent(Word old, Word in_degree, Word sources, Word source_weights,
                                               Word out_degree, Word destinations, Word destination_weights, Word info,
                                               Word reorder, void* made) {
  return make(Topology::edges, "MPI_Dist_graph_create_adjacent", made, old, in_degree, sources, source_weights,
              out_degree, destinations, destination_weights, info, reorder, made);
}

#define WHERRY_FORTRAN_HOOKS(suffix)                                                                                  \
  WHERRY_HOOK void mpi_cart_create##suffix(Word old, Word dimensions, Word sizes, Word periods, Word reorder,         \
                                           int* made, int* error) {                                                   \
    make_fortran(Topology::grid, "mpi_cart_create" #suffix, made, error, old, dimensions, sizes, periods, reorder);   \
  }                                                                                                                   \
  WHERRY_HOOK void mpi_cart_sub##suffix(Word old, Word kept, int* made, int* error) {                                 \
    make_fortran(Topology::grid, "mpi_cart_sub" #suffix, made, error, old, kept);                                     \
  }                                                                                                                   \
  WHERRY_HOOK void mpi_graph_create##suffix(Word old, Word nodes, Word index, Word edges, Word reorder, int* made,    \
                                            int* error) {                                                             \
    make_fortran(Topology::graph, "mpi_graph_create" #suffix, made, error, old, nodes, index, edges, reorder);        \
  }                                                                                                                   \
  WHERRY_HOOK void mpi_dist_graph_create##suffix(Word old, Word count, Word sources, Word degrees, Word destinations, \
                                                 Word weights, Word info, Word reorder, int* made, int* error) {      \
    make_fortran(Topology::edges, "mpi_dist_graph_create" #suffix, made, error, old, count, sources, degrees,         \
                 destinations, weights, info, reorder);                                                               \
  }                                                                                                                   \
  WHERRY_HOOK void mpi_dist_graph_create_adjacent##suffix(                                                            \
      Word old, Word in_degree, Word sources, Word source_weights, Word out_degree, Word destinations,                \
      Word destination_weights, Word info, Word reorder, int* made, int* error) {                                     \
    make_fortran(Topology::edges, "mpi_dist_graph_create_adjacent" #suffix, made, error, old, in_degree, sources,     \
                 source_weights, out_degree, destinations, destination_weights, info, reorder);                       \
  }

WHERRY_FORTRAN_HOOKS(_)
WHERRY_FORTRAN_HOOKS(_f08_)
// NOLINTEND(readability-identifier-naming)
