// SPDX-License-Identifier: Apache-2.0
#include "mpirun/launcher.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include <wherry/error.hpp>

#include "run/elf_file.hpp"
#include "run/loader.hpp"

namespace wherry::tools {
namespace {

/// The names of launchers. Names of one family come first, because Debian's alternatives do not redirect them. The
/// order of folders in PATH has priority over the order of names.
std::vector<std::string> names_of(MpiFamily family) {
  if (family == MpiFamily::mpich) return {"mpiexec.hydra", "mpiexec.mpich", "mpiexec", "mpirun"};
  return {"mpirun.openmpi", "mpiexec.openmpi", "mpiexec", "mpirun"};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string last_word(const std::string& line) {
  const std::size_t end = line.find_last_not_of(' ') + 1;
  const std::size_t space = line.substr(0, end).rfind(' ');
  return space == std::string::npos ? line : line.substr(space + 1, end - space - 1);
}

/// Parses "    Version:                                 5.0.2".
std::string version_in_list(const std::string& text) {
  constexpr std::string_view title = "Version:";
  const std::size_t found = text.find(title);
  if (found == std::string::npos) return "";
  return last_word(first_line(text.substr(found + title.size())));
}

std::optional<Launcher> usable(const std::filesystem::path& path, MpiFamily family) {
  if (path.empty() || access(path.c_str(), X_OK) != 0) return std::nullopt;
  auto launcher = ask_launcher(path);
  if (launcher && launcher->family != family) launcher.reset();
  return launcher;
}

std::optional<Launcher> in_folder(const std::filesystem::path& folder, MpiFamily family) {
  for (const std::string& name : names_of(family)) {
    if (auto launcher = usable(folder / name, family)) return launcher;
  }
  return std::nullopt;
}

std::optional<Launcher> in_path(MpiFamily family) {
  for (const std::filesystem::path& folder : program_folders()) {
    if (auto launcher = in_folder(folder, family)) return launcher;
  }
  return std::nullopt;
}

/// Hydra starts processes of any MPICH. Open MPI's launcher and library need the same version.
bool fits(const Launcher& launcher, const MpiLibrary& library) {
  if (library.family == MpiFamily::mpich) return true;
  const auto elf = ElfFile::open(library.path);
  return elf && elf->contains(launcher.version);
}

/// A virtual environment of Python or conda has its launcher beside its interpreter, even if it is not activated.
std::filesystem::path first_launcher(const std::filesystem::path& program) {
  const auto folder = std::filesystem::absolute(program).parent_path();
  const auto beside = folder / "mpiexec";
  std::error_code error;
  const bool is_environment = std::filesystem::exists(folder.parent_path() / "pyvenv.cfg", error) ||
                              std::filesystem::exists(folder.parent_path() / "conda-meta", error);
  return is_environment && access(beside.c_str(), X_OK) == 0 ? beside : find_program("mpiexec");
}

Launcher of_family(MpiFamily family) {
  if (auto launcher = in_path(family)) return *launcher;
  throw Error(ENOENT, fmt::format("find the launcher of {} in", name_of(family)), "PATH",
              "name it, as in --mpi /opt/mpi/bin/mpiexec");
}

}  // namespace

int Launcher::major() const { return std::atoi(version.c_str()); }

std::optional<Launcher> ask_launcher(const std::filesystem::path& path) {
  const std::string text = output_of({path.string(), "--version"});
  if (text.starts_with("HYDRA build details")) return Launcher{path, MpiFamily::mpich, version_in_list(text)};
  const std::string line = first_line(text);
  if (line.find("(Open MPI)") == std::string::npos && line.find("(OpenRTE)") == std::string::npos) return std::nullopt;
  return Launcher{path, MpiFamily::openmpi, last_word(line)};
}

Launcher launcher_of(const MpiLibrary& library) {
  for (auto folder = library.path.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (auto launcher = in_folder(folder / "bin", library.family)) return *launcher;
  }
  auto launcher = in_path(library.family);
  if (launcher && fits(*launcher, library)) return *launcher;
  throw Error(ENOENT, fmt::format("find the {} launcher of", name_of(library.family)), library.path.string(),
              launcher
                  ? fmt::format("{} is of another version, {}: name the right one, as in --mpi /opt/mpi/bin/mpiexec",
                                launcher->path.string(), launcher->version)
                  : "there is no mpiexec of this MPI in a bin folder above the library or in PATH: name it, as in "
                    "--mpi /opt/mpi/bin/mpiexec");
}

Launcher launcher_for(const std::string& word, const std::filesystem::path& program) {
  if (word == "mpich") return of_family(MpiFamily::mpich);
  if (word == "openmpi") return of_family(MpiFamily::openmpi);
  const auto path = word.empty() ? first_launcher(program) : find_program(word);
  if (path.empty() || access(path.c_str(), X_OK) != 0) {
    throw Error(ENOENT, "find", word.empty() ? "mpiexec" : word,
                word.empty()
                    ? "there is no MPI beside the program or in PATH: install one, or name its launcher, as in "
                      "--mpi /opt/mpi/bin/mpiexec"
                    : "--mpi takes mpich, openmpi or the path of a launcher");
  }
  if (auto launcher = ask_launcher(path)) return *launcher;
  throw Error(ENOTSUP, "use", path.string(), "it is no launcher of MPICH or Open MPI; name one with --mpi");
}

}  // namespace wherry::tools
