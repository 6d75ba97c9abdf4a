// SPDX-License-Identifier: Apache-2.0
#include "common/root_library.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "common/environment.hpp"

namespace wherry::tools {
namespace {

constexpr const char* kPlace = "ROOTENV_USER_PATH";

/// The user's own .rootrc that ROOT would read: in the folder of the variable if it is set, else at home. Empty if
/// there is none.
std::string own_rootrc(std::filesystem::path& path) {
  const char* folder = std::getenv(kPlace);
  if (folder == nullptr || *folder == '\0') folder = std::getenv("HOME");
  if (folder == nullptr) return "";
  path = std::filesystem::path(folder) / ".rootrc";
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Makes ROOT read our .rootrc, unless the user's own has our line. ROOT reads only one.
void let_root_read(const std::filesystem::path& folder) {
  std::filesystem::path own;
  const std::string text = own_rootrc(own);
  if (text.find(" TScifFile ") != std::string::npos) return;
  if (!text.empty()) {
    fmt::print(stderr, "wherry run: ROOT reads {0} instead of {1}; to have both: cat {0} >> {1}\n",
               (folder / ".rootrc").string(), own.string());
  }
  setenv(kPlace, folder.c_str(), 1);
}

}  // namespace

std::optional<std::filesystem::path> find_root_folder() {
  std::error_code error;
  auto folder = library_folder() / "root";
  if (!std::filesystem::exists(folder / "libWherryROOT.so", error)) return std::nullopt;
  return folder;
}

std::optional<std::string> merged_by_root(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::size_t options = word.find('?');
    if (options == std::string::npos || word.find("pmerge", options) == std::string::npos) continue;
    if (word.find("wherry:") != std::string::npos || word.find("wherry+") != std::string::npos) return word;
  }
  return std::nullopt;
}

void use_root_folder(const std::filesystem::path& folder) {
  put_first("ROOT_LIBRARY_PATH", folder.string());
  let_root_read(folder);
  put_first("ROOT_INCLUDE_PATH", folder.string());
}

}  // namespace wherry::tools
