// SPDX-License-Identifier: Apache-2.0
//
// The MPI library of this process. Which one that is shows only at run time: mpi4py, for one, has extension modules for
// several and chooses when it is imported. So nothing here is compiled against an mpi.h; what the three headers define
// as macros is a row of a table each, which tests/mpi/ compares with the headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace wherry::topology {

/// An argument of an MPI function: an int, a pointer, or a handle, which is an int with MPICH and a pointer with
/// others. All three take one integer register or one stack slot of 8 bytes on x86-64 and on aarch64, and a function
/// that expects an int ignores the upper half: so a Word can be passed on without knowing which of them it is.
using Word = std::uintptr_t;

/// MPI_SUCCESS, by the standard.
inline constexpr int kSuccess = 0;

/// What one binary interface of MPI fixes.
struct Interface {
  const char* library;       ///< soname
  std::size_t handle_bytes;  ///< sizeof(MPI_Comm)
  struct Handle {
    Word value;          ///< unless it is an address
    const char* object;  ///< the object whose address it is, or null
  };
  Handle null_communicator;  ///< MPI_COMM_NULL
  Handle world;              ///< MPI_COMM_WORLD
  Handle byte;               ///< MPI_BYTE
  Handle errors_return;      ///< MPI_ERRORS_RETURN
  const char* from_fortran;  ///< the function that turns a Fortran handle into a C one; null: they are the same
  int no_process;            ///< MPI_PROC_NULL
};

/// An MPI library that is loaded, and its PMPI_ functions: they are what a profiling library between the program and
/// MPI does not see. The library stays loaded. Immutable; any thread.
class Mpi {
 public:
  /// The one whose PMPI_ functions the program would reach. Empty: the process has none of those known.
  static std::optional<Mpi> of_this_process() noexcept;

  /// MPI_Comm, or another handle, in the place where a C function of MPI has stored it.
  [[nodiscard]] Word handle_at(const void* place) const noexcept;
  /// MPI_Comm of a Fortran handle.
  [[nodiscard]] Word from_fortran(int handle) const noexcept;
  [[nodiscard]] bool is_null(Word communicator) const noexcept { return communicator == null_communicator_; }
  [[nodiscard]] Word world() const noexcept { return world_; }
  [[nodiscard]] Word byte() const noexcept { return byte_; }
  [[nodiscard]] Word errors_return() const noexcept { return errors_return_; }
  [[nodiscard]] const Interface& interface() const noexcept { return *interface_; }
  /// A function of the library, or of its Fortran part. Null: it has none of this name.
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
};

}  // namespace wherry::topology
