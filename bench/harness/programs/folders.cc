// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/programs/folders.hpp"

#include <cstdlib>
#include <system_error>

namespace wherry::bench {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> named_by(const char* variable) {
  const char* named = std::getenv(variable);
  if (named == nullptr || *named == '\0') return std::nullopt;
  return named;
}

fs::path this_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

/// Of an installed program: its folder is wherry/bench in the installation's folder of libraries.
bool is_installed(const fs::path& here) {
  return here.filename() == "bench" && here.parent_path().filename() == "wherry";
}

}  // namespace

fs::path installation() {
  const fs::path here = this_folder();
  if (!is_installed(here)) return here.parent_path();
  // PREFIX/lib, PREFIX/lib64 or PREFIX/lib/MACHINE.
  const fs::path libraries = here.parent_path().parent_path();
  const fs::path above = libraries.parent_path();
  return above.filename() == "lib" ? above.parent_path() : above;
}

fs::path library_folder() {
  const fs::path here = this_folder();
  return is_installed(here) ? here.parent_path() : here.parent_path() / "lib" / "wherry";
}

fs::path wherry_program() { return installation() / "bin" / "wherry"; }

std::vector<fs::path> peer_folders() {
  if (const auto named = named_by("WHERRY_BENCH_PEERS")) return {*named};
  // What scripts/build-peers makes serves all presets, which are build/PRESET.
  return {installation().parent_path() / "peers", library_folder() / "bench"};
}

std::optional<fs::path> find_peer_folder(const std::string& name) {
  for (const fs::path& place : peer_folders()) {
    std::error_code ignored;
    if (fs::is_directory(place / name, ignored)) return place / name;
  }
  return std::nullopt;
}

std::vector<fs::path> program_folders(const char* variable) {
  if (const auto named = named_by(variable)) return {*named};
  // One folder once: a module that is loaded twice has no systems the second time.
  const fs::path here = this_folder();
  if (is_installed(here)) return {here};
  return {here, library_folder() / "bench"};
}

std::optional<fs::path> find_bench_program(const std::string& name, const char* variable) {
  for (const fs::path& place : program_folders(variable)) {
    std::error_code ignored;
    if (fs::exists(place / name, ignored)) return place / name;
  }
  return std::nullopt;
}

}  // namespace wherry::bench
