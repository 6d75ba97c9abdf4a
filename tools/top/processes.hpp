// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top/reading.hpp"

namespace wherry::tools {

/// All processes of this user that have, or had, a Wherry endpoint, found through /proc. Processes that come, go, or
/// may not be looked at are left out quietly.
Reading read_processes();

}  // namespace wherry::tools
