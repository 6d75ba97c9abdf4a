// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top/reading.hpp"

namespace wherry::tools {

/// Reads all processes of this user that have or had a Wherry endpoint, found through /proc. Silently omits processes
/// that start, end, or may not be inspected.
Reading read_processes();

}  // namespace wherry::tools
