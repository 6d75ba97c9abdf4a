// SPDX-License-Identifier: Apache-2.0
// Where the programs are that are measured, from a checkout's build as from an installation.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wherry::bench {

/// The folder that has bin/wherry: the prefix that this program was installed below, or build/PRESET.
std::filesystem::path installation();

/// The folder with the libraries that programs of the installation load: PREFIX/lib/wherry, wherry in another folder of
/// libraries, or build/PRESET/lib/wherry.
std::filesystem::path library_folder();

/// The program wherry of that installation.
std::filesystem::path wherry_program();

/// The folders that may have one folder for each program: the one that WHERRY_BENCH_PEERS names, else build/peers
/// (scripts/build-peers) and bench in the folder of libraries.
std::vector<std::filesystem::path> peer_folders();

/// The one of that program, built or not.
std::optional<std::filesystem::path> find_peer_folder(const std::string& name);

/// The folders that may have programs and modules of our own: the one that the environment variable names, else that of
/// this program and bench in the folder of libraries.
std::vector<std::filesystem::path> program_folders(const char* variable);

/// The program of that name in one of these.
std::optional<std::filesystem::path> find_bench_program(const std::string& name, const char* variable);

}  // namespace wherry::bench
