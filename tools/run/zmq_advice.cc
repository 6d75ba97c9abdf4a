// SPDX-License-Identifier: Apache-2.0
#include "run/zmq_advice.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"
#include "run/elf_file.hpp"

namespace wherry::tools {
namespace {

constexpr std::string_view kSoname = "libzmq.so.5";

/// All that a program writes to its standard output; its other output is dropped.
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

/// The libzmq that the dynamic loader finds for the program or for a library that it needs.
std::string library_in_use(const ElfFile& program, const std::filesystem::path& path) {
  if (program.loader().empty()) return "";
  const std::string list = output_of({program.loader(), "--list", path.string()});
  const std::string before = fmt::format("\t{} => ", kSoname);
  const std::size_t found = list.find(before);
  if (found == std::string::npos) return "";
  const std::string rest = list.substr(found + before.size());
  return rest.substr(0, rest.find_first_of(" \n"));
}

/// Of what libzmq can be built with, what shows in the file.
std::vector<std::string> features(const ElfFile& library) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLibraries{
      {{"libnorm.", "norm"}, {"libpgm-", "pgm"}, {"libgssapi", "gssapi"}}};
  std::vector<std::string> found;
  for (const std::string& name : library.needed()) {
    for (const auto& [beginning, feature] : kLibraries) {
      if (name.starts_with(beginning)) found.emplace_back(feature);
    }
  }
  using namespace std::string_view_literals;
  if (library.contains("\0zmq_join\0"sv)) found.emplace_back("draft");
  return found;
}

/// Two of its texts, which no other library has.
bool is_libzmq_inside(const ElfFile& program) {
  return program.contains("inproc://zeromq.zap.01") &&
         program.contains("The protocol is not compatible with the socket type");
}

}  // namespace

std::filesystem::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  while (true) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    std::filesystem::path candidate = colon == 0 ? "." : std::filesystem::path(rest.substr(0, colon));
    candidate /= name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    if (colon == rest.size()) return {};
    rest.remove_prefix(colon + 1);
  }
}

std::vector<std::string> zmq_advice(const std::filesystem::path& program, const std::filesystem::path& replacement) {
  const std::optional<ElfFile> file = ElfFile::open(program);
  if (!file) return {};
  const std::string in_use = library_in_use(*file, program);
  if (in_use.empty()) {
    if (!is_libzmq_inside(*file) || file->contains("WHERRY_ZMQ_MAP")) return {};
    return {
        fmt::format("{} has a libzmq of its own inside, which knows nothing of wherry:// and cannot be replaced; link "
                    "it with {} instead (docs/zmq.md)",
                    program.string(), replacement.string())};
  }
  const std::optional<ElfFile> before = ElfFile::open(in_use);
  const std::optional<ElfFile> after = ElfFile::open(replacement);
  if (!before || !after) return {};
  std::vector<std::string> missing = features(*before);
  for (const std::string& kept : features(*after)) std::erase(missing, kept);
  if (missing.empty()) return {};
  return {fmt::format("the libzmq with wherry:// has no {}, which {} has; --no-zmq keeps that",
                      fmt::join(missing, ", "), in_use)};
}

}  // namespace wherry::tools
