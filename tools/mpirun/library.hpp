// SPDX-License-Identifier: Apache-2.0
//
// Finds the MPI that a program was linked with, from files and without executing the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace wherry::tools {

enum class MpiFamily : std::uint8_t { mpich, openmpi };

std::string_view name_of(MpiFamily family);

/// The shared library of an MPI. The two families have different sonames, and both may have that of the MPI-5 ABI.
struct MpiLibrary {
  MpiFamily family;
  std::filesystem::path path;
};

/// Returns the MPI among the libraries of a program. Empty: it has none, or is a script. Throws Error if the dynamic
/// loader does not find the program's MPI, or if it is of another family.
std::optional<MpiLibrary> mpi_of_program(const std::filesystem::path& program);

/// Returns the library of the launcher's MPI, from a lib folder beside or above it. Empty: not found there.
std::optional<MpiLibrary> mpi_beside_launcher(const std::filesystem::path& launcher, MpiFamily family);

/// Throws Error if the library was built without libfabric, or cannot select it.
void require_libfabric(const MpiLibrary& library);

}  // namespace wherry::tools
