// SPDX-License-Identifier: Apache-2.0
#include "file/mount/writer.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace wherry::file::mount {

/// Not by fuse_req_getgroups, which in libfuse 3.14 reads past the end of its buffer.
bool Writer::is_in_group(gid_t wanted) const {
  if (group == wanted) return true;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name) || name != "Groups:") continue;
    for (gid_t one = 0; words >> one;) {
      if (one == wanted) return true;
    }
  }
  return false;
}

}  // namespace wherry::file::mount
