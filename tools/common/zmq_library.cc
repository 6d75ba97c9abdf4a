// SPDX-License-Identifier: Apache-2.0
#include "common/zmq_library.hpp"

#include <cstdlib>
#include <string>
#include <system_error>

namespace wherry::tools {
namespace {

/// Puts `value` before what the variable holds, unless it is there already.
void put_first(const char* variable, const std::string& value) {
  const char* before = std::getenv(variable);
  const std::string old = before == nullptr ? "" : before;
  if ((":" + old + ":").find(":" + value + ":") != std::string::npos) return;
  setenv(variable, (old.empty() ? value : value + ":" + old).c_str(), 1);
}

}  // namespace

std::optional<std::filesystem::path> find_zmq_library() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  auto library = program.parent_path().parent_path() / "lib" / "wherry" / "zmq" / "lib" / "libzmq.so.5";
  if (!std::filesystem::exists(library, error)) return std::nullopt;
  return library;
}

void use_zmq_library(const std::filesystem::path& library) {
  put_first("LD_LIBRARY_PATH", library.parent_path().string());
  put_first("LD_PRELOAD", library.string());
}

}  // namespace wherry::tools
