// SPDX-License-Identifier: Apache-2.0
// The systems that are always there. Each file of this folder makes some and adds its line here.
#pragma once

#include "bench/harness/system.hpp"

namespace wherry::bench {

void add_wherry(Systems& systems);
void add_sockets(Systems& systems);

/// All of them, in the order tables show them.
Systems built_in_systems();

}  // namespace wherry::bench
