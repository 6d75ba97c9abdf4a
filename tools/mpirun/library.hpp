// SPDX-License-Identifier: Apache-2.0
//
// Which MPI a program was linked with, read from files: nothing of the program is run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace wherry::tools {

enum class MpiFamily : std::uint8_t { mpich, openmpi };

std::string_view name_of(MpiFamily family);

/// An MPI's shared library, which the two families give different sonames and which may have the MPI-5 ABI's.
struct MpiLibrary {
  MpiFamily family;
  std::filesystem::path path;
};

/// The MPI among the libraries of a program. Empty: it has none, or is a script. Throws Error if it needs one that the
/// dynamic loader does not find, or one of another family.
std::optional<MpiLibrary> mpi_of_program(const std::filesystem::path& program);

/// The library of the MPI whose launcher this is, in a lib folder beside or above it. Empty: it lies elsewhere.
std::optional<MpiLibrary> mpi_beside_launcher(const std::filesystem::path& launcher, MpiFamily family);

/// Throws Error if the library has no libfabric, or cannot be asked to use it.
void require_libfabric(const MpiLibrary& library);

}  // namespace wherry::tools
