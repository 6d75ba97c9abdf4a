// SPDX-License-Identifier: Apache-2.0
// Systems that move data between two hosts, for `wherry bench net`.
#pragma once

#include "bench/harness/registry.hpp"

namespace wherry::bench::net {

/// Adds a system `net-NAME` for each of the registry's systems that can listen on a host's address.
void add_systems(Registry& registry);

}  // namespace wherry::bench::net
