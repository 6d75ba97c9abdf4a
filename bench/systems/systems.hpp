// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/harness/registry.hpp"

namespace wherry::bench {

/// All that can be measured on this machine, in the order tables show it, and what could be and is not here.
Registry find_systems();

}  // namespace wherry::bench
