// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/harness/registry.hpp"

namespace wherry::bench {

/// Adds the peers that are programs of their own: each has a folder with its peer.json in one of peer_folders().
void add_programs(Registry& registry);

}  // namespace wherry::bench
