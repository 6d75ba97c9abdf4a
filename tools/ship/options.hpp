// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace wherry::tools {

struct ShipOptions {
  std::string to = "wherry://0:2000";
  std::vector<std::string> paths;
  std::string directory;   ///< -C: paths are relative to it, and are shipped as given
  std::string files_from;  ///< a file with further paths, "-" for standard input, empty for none
  bool zero = false;       ///< the paths in files_from end with NUL, not newline
  bool no_recursion = false;
  std::string name;  ///< the name of this shipper in the collector's report
  double wait = 5;   ///< seconds to wait for a collector to listen
  bool json = false;
  bool quiet = false;
};

}  // namespace wherry::tools
