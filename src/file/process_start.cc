// SPDX-License-Identifier: Apache-2.0
#include "file/process_start.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace wherry::file {

std::uint64_t process_start(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return 0;
  const std::size_t name_end = line.rfind(')');  // the second field, which may contain anything
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  std::uint64_t start = 0;
  fields >> start;
  return fields ? start : 0;
}

}  // namespace wherry::file
