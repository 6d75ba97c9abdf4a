// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "bench/harness/registry.hpp"
#include "bench/systems/net/systems.hpp"

namespace wherry::bench {

/// All that can be measured on this machine, in the order tables show it, and what could be and is not here.
/// `hosts`: those of the systems that are measured between hosts.
Registry find_systems(const std::shared_ptr<net::Hosts>& hosts = net::two_namespaces());

}  // namespace wherry::bench
