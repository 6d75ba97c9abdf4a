// SPDX-License-Identifier: Apache-2.0
// Systems that move data between two hosts, for `wherry bench net`.
#pragma once

#include <memory>

#include "bench/harness/registry.hpp"
#include "bench/systems/net/hosts.hpp"

namespace wherry::bench::net {

/// Two network namespaces of this machine, which are made by the first sample.
[[nodiscard]] std::shared_ptr<Hosts> two_namespaces();

/// Adds a system `net-NAME` for each of the registry's systems that can listen on a host's address.
void add_systems(Registry& registry, const std::shared_ptr<Hosts>& hosts);

}  // namespace wherry::bench::net
