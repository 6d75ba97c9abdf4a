// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/harness/registry.hpp"

namespace wherry::bench {

/// Adds the systems of each wherry-peer-*.so in one of program_folders("WHERRY_BENCH_PEERS"). Modules stay loaded. What
/// was not built for want of a library is missing, and the reason says which package has it.
void add_modules(Registry& registry);

}  // namespace wherry::bench
