// SPDX-License-Identifier: Apache-2.0
#include "mpi.hpp"

#include <dlfcn.h>

#include <array>
#include <cstring>

namespace wherry::topology {
namespace {

constexpr std::array kInterfaces{
    Interface{"libmpi_abi.so.1",
              sizeof(void*),
              {0x100, nullptr},
              {0x101, nullptr},
              {0x247, nullptr},
              {0x143, nullptr},
              {0x28, nullptr},
              "PMPI_Comm_fromint",
              -3},
    Interface{"libmpi.so.12",
              sizeof(int),
              {0x04000000, nullptr},
              {0x44000000, nullptr},
              {0x4c00010d, nullptr},
              {0x54000001, nullptr},
              {0x58000006, nullptr},
              nullptr,
              -1},
    // MPICH again, under Debian's name.
    Interface{"libmpich.so.12",
              sizeof(int),
              {0x04000000, nullptr},
              {0x44000000, nullptr},
              {0x4c00010d, nullptr},
              {0x54000001, nullptr},
              {0x58000006, nullptr},
              nullptr,
              -1},
    Interface{"libmpi.so.40",
              sizeof(void*),
              {0, "ompi_mpi_comm_null"},
              {0, "ompi_mpi_comm_world"},
              {0, "ompi_mpi_byte"},
              {0, "ompi_mpi_errors_return"},
              {0, "ompi_mpi_op_band"},
              "PMPI_Comm_f2c",
              -2},
};

/// The Fortran bindings, which C programs do not load.
constexpr std::array kFortranLibraries{"libmpifort.so.12", "libmpichfort.so.12", "libmpi_mpifh.so.40",
                                       "libmpi_usempif08.so.40"};

void* loaded(const char* library) noexcept { return dlopen(library, RTLD_NOW | RTLD_NOLOAD); }

template <class Function>
bool find(void* library, const char* name, Function*& function) noexcept {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

/// Returns the address of a library's object. A program that is not position-independent has a copy of the object,
/// which the library uses as well.
void* object_in_use(void* library, const char* name) noexcept {
  void* const copy = dlsym(RTLD_DEFAULT, name);
  return copy != nullptr ? copy : dlsym(library, name);
}

}  // namespace

// The process may have a second MPI behind one of its libraries: the symbol that is found first decides. If the only
// MPI came with a Python module, into that module's own scope, no symbol is found.
std::optional<Mpi> Mpi::of_this_process() noexcept {
  constexpr auto known = "PMPI_Comm_size";
  void* const first = dlsym(RTLD_NEXT, known);
  for (const Interface& interface : kInterfaces) {
    void* const library = loaded(interface.library);
    if (library == nullptr || (first != nullptr && dlsym(library, known) != first)) continue;
    Mpi mpi;
    if (mpi.load(interface, library)) return mpi;
  }
  return std::nullopt;
}

bool Mpi::load(const Interface& interface, void* library) noexcept {
  interface_ = &interface;
  library_ = library;
  const auto constant = [library](const Interface::Handle& handle) {
    return handle.object == nullptr ? handle.value : reinterpret_cast<Word>(object_in_use(library, handle.object));
  };
  null_communicator_ = constant(interface.null_communicator);
  world_ = constant(interface.world);
  byte_ = constant(interface.byte);
  errors_return_ = constant(interface.errors_return);
  bits_of_all_ = constant(interface.bits_of_all);
  return null_communicator_ != 0 && world_ != 0 && byte_ != 0 && errors_return_ != 0 && bits_of_all_ != 0 &&
         load_functions();
}

bool Mpi::load_functions() noexcept {
  return find(library_, "PMPI_Initialized", initialized) && find(library_, "PMPI_Finalized", finalized) &&
         find(library_, "PMPI_Comm_group", comm_group) && find(library_, "PMPI_Group_difference", group_difference) &&
         find(library_, "PMPI_Group_size", group_size) && find(library_, "PMPI_Group_free", group_free) &&
         find(library_, "PMPI_Comm_size", comm_size) && find(library_, "PMPI_Comm_rank", comm_rank) &&
         find(library_, "PMPI_Cartdim_get", cartdim_get) && find(library_, "PMPI_Cart_shift", cart_shift) &&
         find(library_, "PMPI_Graph_neighbors_count", graph_neighbors_count) &&
         find(library_, "PMPI_Graph_neighbors", graph_neighbors) &&
         find(library_, "PMPI_Dist_graph_neighbors_count", dist_graph_neighbors_count) &&
         find(library_, "PMPI_Dist_graph_neighbors", dist_graph_neighbors) &&
         find(library_, "PMPI_Allgather", allgather) && find(library_, "PMPI_Allreduce", allreduce) &&
         find(library_, "PMPI_Comm_create_keyval", comm_create_keyval) &&
         find(library_, "PMPI_Comm_free_keyval", comm_free_keyval) &&
         find(library_, "PMPI_Comm_set_attr", comm_set_attr) &&
         find(library_, "PMPI_Comm_get_errhandler", comm_get_errhandler) &&
         find(library_, "PMPI_Comm_set_errhandler", comm_set_errhandler) &&
         find(library_, "PMPI_Errhandler_free", errhandler_free);
}

Word Mpi::handle_at(const void* place) const noexcept {
  if (interface_->handle_bytes == sizeof(int)) {
    unsigned handle = 0;
    std::memcpy(&handle, place, sizeof handle);
    return handle;
  }
  Word handle = 0;
  std::memcpy(&handle, place, sizeof handle);
  return handle;
}

Word Mpi::from_fortran(int handle) const noexcept {
  Word (*convert)(int) = nullptr;
  if (interface_->from_fortran == nullptr || !find(library_, interface_->from_fortran, convert)) {
    return static_cast<unsigned>(handle);
  }
  return convert(handle);
}

void* Mpi::function(const char* name) const noexcept {
  if (void* const found = dlsym(library_, name)) return found;
  for (const char* const name_of_library : kFortranLibraries) {
    void* const library = loaded(name_of_library);
    if (void* const found = library == nullptr ? nullptr : dlsym(library, name)) return found;
  }
  return nullptr;
}

}  // namespace wherry::topology
