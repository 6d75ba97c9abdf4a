// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"

namespace wherry::file {

/// Opens the file of a descriptor again, with a new open file description, whatever its name is now. On failure the
/// result is invalid and errno is set.
UniqueFd open_again(int descriptor, int flags);

}  // namespace wherry::file
