// SPDX-License-Identifier: Apache-2.0
//
// wherry_api_manual FOLDER HEADER...: writes FOLDER/man3 for the functions of our C headers.
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "manual/api/pages.hpp"

namespace wherry::manual {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMain = "wherry/wherry.h";

std::string read(const fs::path& file) {
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw std::runtime_error("cannot read " + file.string());
  return text;
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

/// "wherry" for the main header, else "wherry_mailbox" and the like.
std::string name_of(const fs::path& header) {
  const std::string stem = header.stem().string();
  return stem == fs::path(kMain).stem() ? stem : "wherry_" + stem;
}

void generate(const fs::path& folder, const fs::path& header) {
  const CHeader found = read_c_header(read(header));
  if (found.groups.empty()) return;
  for (const Page& page : pages_of(found, name_of(header), kMain)) write(folder / (page.name + ".3"), page.text);
}

}  // namespace
}  // namespace wherry::manual

int main(int argc, char** argv) {
  try {
    if (argc < 3) throw std::runtime_error("usage: wherry_api_manual FOLDER HEADER...");
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / "man3";
    std::filesystem::create_directories(folder);
    for (int i = 2; i < argc; ++i) wherry::manual::generate(folder, argv[i]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "wherry_api_manual: {}\n", error.what());
    return 1;
  }
}
