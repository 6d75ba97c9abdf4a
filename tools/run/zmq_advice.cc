// SPDX-License-Identifier: Apache-2.0
#include "run/zmq_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "run/elf_file.hpp"
#include "run/loader.hpp"

namespace wherry::tools {
namespace {

constexpr std::string_view kSoname = "libzmq.so.5";

/// The libzmq that the dynamic loader finds for the program or for one of its libraries.
std::string library_in_use(const std::filesystem::path& program) {
  for (const SharedLibrary& library : libraries_of(program)) {
    if (library.name == kSoname) return library.path.string();
  }
  return "";
}

/// The optional features of a libzmq that its file shows.
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

/// Whether a libzmq is linked statically into the program: looks for two texts that no other library has.
bool is_libzmq_inside(const ElfFile& program) {
  return program.contains("inproc://zeromq.zap.01") &&
         program.contains("The protocol is not compatible with the socket type");
}

}  // namespace

std::vector<std::string> zmq_advice(const std::filesystem::path& program, const std::filesystem::path& replacement) {
  const std::optional<ElfFile> file = ElfFile::open(program);
  if (!file) return {};
  const std::string in_use = library_in_use(program);
  if (in_use.empty()) {
    if (!is_libzmq_inside(*file) || file->contains("WHERRY_ZMQ_MAP")) return {};
    return {
        fmt::format("{} has a libzmq of its own inside, which does not support wherry:// and cannot be replaced; link "
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
