// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

namespace wherry::tools {

Action add_pipe(CLI::App&) {
  return [] { return 1; };
}

}  // namespace wherry::tools
