// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "bench/harness/registry.hpp"

namespace wherry::bench {

/// Adds the peers that are programs of their own: each has a folder with its peer.json, below the folder that
/// WHERRY_BENCH_PEERS names, else below build/peers (scripts/build-peers) or ../lib/wherry/bench beside the program.
void add_foreign_peers(Registry& registry);

/// Where that peer lies, built or not.
std::optional<std::filesystem::path> find_peer_folder(const std::string& name);

}  // namespace wherry::bench
