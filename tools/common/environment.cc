// SPDX-License-Identifier: Apache-2.0
#include "common/environment.hpp"

#include <cstdlib>
#include <system_error>

namespace wherry::tools {

void put_first(const char* variable, const std::string& value) {
  const char* before = std::getenv(variable);
  const std::string old = before == nullptr ? "" : before;
  if ((":" + old + ":").find(":" + value + ":") != std::string::npos) return;
  setenv(variable, (old.empty() ? value : value + ":" + old).c_str(), 1);
}

std::filesystem::path library_folder() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const auto prefix = program.parent_path().parent_path();
  const auto installed = prefix / WHERRY_INSTALL_LIBDIR / "wherry";
  return std::filesystem::exists(installed, error) ? installed : prefix / "lib" / "wherry";
}

}  // namespace wherry::tools
