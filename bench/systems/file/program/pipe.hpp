// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/unique_fd.hpp"

namespace wherry::bench::file {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

/// Throws std::system_error.
Pipe make_pipe();

/// All that is written until the other end is closed.
std::string read_all(int descriptor);

}  // namespace wherry::bench::file
