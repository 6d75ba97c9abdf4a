// SPDX-License-Identifier: Apache-2.0
//
// The MPI library of this process. Which library it is shows only at run time: mpi4py, for example, has extension
// modules for several and chooses on import. So nothing here is compiled against an mpi.h. A table has a row for each
// binary interface with the values that its header defines as macros; tests/mpi/ compares them with the headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace wherry::topology {

/// An argument of an MPI function: an int, a pointer, or a handle, which is an int with MPICH and a pointer with
/// others. On x86-64 and on aarch64 each takes one integer register or one stack slot of 8 bytes. A function that
/// expects an int ignores the upper half. So a Word can be passed on whichever of them it is.
using Word = std::uintptr_t;

/// MPI_SUCCESS, by the standard.
inline constexpr int kSuccess = 0;

/// The constants of one binary interface of MPI.
struct Interface {
  const char* library;       ///< soname
  std::size_t handle_bytes;  ///< sizeof(MPI_Comm)
  struct Handle {
    Word value;          ///< unless it is an address
    const char* object;  ///< the object whose address is the value, or null
  };
  Handle null_communicator;  ///< MPI_COMM_NULL
  Handle world;              ///< MPI_COMM_WORLD
  Handle byte;               ///< MPI_BYTE
  Handle errors_return;      ///< MPI_ERRORS_RETURN
  Handle bits_of_all;        ///< MPI_BAND
  const char* from_fortran;  ///< the function that converts a Fortran handle to a C one; null if they are equal
  int no_process;            ///< MPI_PROC_NULL
};

/// A loaded MPI library and its PMPI_ functions, which bypass a profiling library between the program and MPI. The
/// library stays loaded. Immutable; any thread.
class Mpi {
 public:
  /// Returns the library whose PMPI_ functions the program would reach, or nothing if the process has none that is
  /// known.
  static std::optional<Mpi> of_this_process() noexcept;

  /// Reads MPI_Comm, or another handle, from where a C function of MPI has stored it.
  [[nodiscard]] Word handle_at(const void* place) const noexcept;
  /// Converts a Fortran handle to MPI_Comm.
  [[nodiscard]] Word from_fortran(int handle) const noexcept;
  [[nodiscard]] bool is_null(Word communicator) const noexcept { return communicator == null_communicator_; }
  [[nodiscard]] Word world() const noexcept { return world_; }
  [[nodiscard]] Word byte() const noexcept { return byte_; }
  [[nodiscard]] Word errors_return() const noexcept { return errors_return_; }
  /// MPI_BAND
  [[nodiscard]] Word bits_of_all() const noexcept { return bits_of_all_; }
  [[nodiscard]] const Interface& interface() const noexcept { return *interface_; }
  /// Returns a function of the library or of its Fortran part. Null if there is none of this name.
  [[nodiscard]] void* function(const char* name) const noexcept;

  using CopyAttribute = int(Word communicator, int key, void* extra, void* value, void* copy, int* is_copied);
  using DeleteAttribute = int(Word communicator, int key, void* value, void* extra);

  int (*initialized)(int* yes) = nullptr;
  int (*finalized)(int* yes) = nullptr;
  int (*comm_group)(Word communicator, void* group) = nullptr;
  int (*group_difference)(Word group, Word without, void* difference) = nullptr;
  int (*group_size)(Word group, int* size) = nullptr;
  int (*group_free)(void* group) = nullptr;
  int (*comm_size)(Word communicator, int* size) = nullptr;
  int (*comm_rank)(Word communicator, int* rank) = nullptr;
  int (*cartdim_get)(Word communicator, int* dimensions) = nullptr;
  int (*cart_shift)(Word communicator, int dimension, int steps, int* source, int* destination) = nullptr;
  int (*graph_neighbors_count)(Word communicator, int rank, int* count) = nullptr;
  int (*graph_neighbors)(Word communicator, int rank, int room, int* neighbours) = nullptr;
  int (*dist_graph_neighbors_count)(Word communicator, int* sources, int* destinations, int* weighted) = nullptr;
  int (*dist_graph_neighbors)(Word communicator, int source_room, int* sources, int* source_weights,
                              int destination_room, int* destinations, int* destination_weights) = nullptr;
  int (*allgather)(const void* own, int own_count, Word own_type, void* all, int count, Word type,
                   Word communicator) = nullptr;
  int (*allreduce)(const void* own, void* result, int count, Word type, Word operation, Word communicator) = nullptr;
  int (*comm_create_keyval)(CopyAttribute*, DeleteAttribute*, int* key, void* extra) = nullptr;
  int (*comm_free_keyval)(int* key) = nullptr;
  int (*comm_set_attr)(Word communicator, int key, void* value) = nullptr;
  int (*comm_get_errhandler)(Word communicator, void* handler) = nullptr;
  int (*comm_set_errhandler)(Word communicator, Word handler) = nullptr;
  int (*errhandler_free)(void* handler) = nullptr;

 private:
  [[nodiscard]] bool load(const Interface& interface, void* library) noexcept;
  [[nodiscard]] bool load_functions() noexcept;

  const Interface* interface_ = nullptr;
  void* library_ = nullptr;
  Word null_communicator_ = 0;
  Word world_ = 0;
  Word byte_ = 0;
  Word errors_return_ = 0;
  Word bits_of_all_ = 0;
};

}  // namespace wherry::topology
