// SPDX-License-Identifier: Apache-2.0
// The systems that are always there. Each file of this folder makes some and adds its line here.
#pragma once

#include "bench/harness/system.hpp"

namespace wherry::bench {

void add_wherry(Systems& systems);
void add_wherry_zerocopy(Systems& systems);
void add_sockets(Systems& systems);
void add_pipe(Systems& systems);
void add_memcpy_limits(Systems& systems);
void add_kernel_copy_limit(Systems& systems);
void add_two_copy_limit(Systems& systems);
void add_slot_limits(Systems& systems);
void add_split_copy_limit(Systems& systems);
void add_wake_limits(Systems& systems);

/// All of them, in the order tables show them.
Systems built_in_systems();

}  // namespace wherry::bench
