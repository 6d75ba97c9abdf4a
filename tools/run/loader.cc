// SPDX-License-Identifier: Apache-2.0
#include "run/loader.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/unique_fd.hpp"
#include "run/elf_file.hpp"

namespace wherry::tools {
namespace {

/// Parses a line of the loader's list: "name => path (address)" or "name => not found".
SharedLibrary library_on(const std::string& line) {
  constexpr std::string_view arrow = " => ";
  const std::size_t found = line.find(arrow);
  const std::size_t begin = line.find_first_not_of("\t ");
  if (found == std::string::npos || begin >= found) return {};
  const std::string rest = line.substr(found + arrow.size());
  const bool is_found = rest.starts_with('/');
  return {line.substr(begin, found - begin), is_found ? rest.substr(0, rest.rfind(" (")) : ""};
}

}  // namespace

std::vector<std::filesystem::path> program_folders() {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  std::vector<std::filesystem::path> folders;
  while (true) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    folders.push_back(colon == 0 ? "." : std::filesystem::path(rest.substr(0, colon)));
    if (colon == rest.size()) return folders;
    rest.remove_prefix(colon + 1);
  }
}

std::filesystem::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  for (const std::filesystem::path& folder : program_folders()) {
    const std::filesystem::path candidate = folder / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

std::string output_of(const std::vector<std::string>& words) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  writing.reset();
  if (error != 0) return "";
  std::string text;
  std::array<char, 4096> buffer{};
  ssize_t n = 0;
  while ((n = read(reading.get(), buffer.data(), buffer.size())) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

std::vector<SharedLibrary> libraries_of(const std::filesystem::path& file) {
  const std::optional<ElfFile> elf = ElfFile::open(file);
  if (!elf) return {};
  std::string loader = elf->loader();
  // A shared library has no loader entry; the loader of this program is used.
  if (loader.empty() && !elf->needed().empty()) {
    if (const std::optional<ElfFile> self = ElfFile::open("/proc/self/exe")) loader = self->loader();
  }
  if (loader.empty()) return {};
  std::istringstream list(output_of({loader, "--list", std::filesystem::absolute(file).string()}));
  std::vector<SharedLibrary> libraries;
  for (std::string line; std::getline(list, line);) {
    if (SharedLibrary library = library_on(line); !library.name.empty()) libraries.push_back(std::move(library));
  }
  // If a library is missing, the loader reports only that one.
  for (const std::string& name : elf->needed()) {
    const auto is_this = [&](const SharedLibrary& library) { return library.name == name; };
    if (std::ranges::none_of(libraries, is_this)) libraries.push_back({name, ""});
  }
  return libraries;
}

}  // namespace wherry::tools
