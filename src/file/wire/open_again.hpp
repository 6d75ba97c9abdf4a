// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"

namespace wherry::file {

/// Another open file description of the same file, whatever its name is by now. Invalid with errno set where that
/// fails.
UniqueFd open_again(int descriptor, int flags);

}  // namespace wherry::file
