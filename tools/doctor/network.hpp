// SPDX-License-Identifier: Apache-2.0
//
// `wherry doctor --network [HOST]`: checks whether other hosts can be reached, and advises what to change.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/own_host.hpp"
#include "doctor/check.hpp"

namespace wherry::tools::doctor {

struct NamedFinding {
  std::string name;
  Finding finding;
};

// network.cc
Finding check_hosts(
    std::shared_ptr<const OwnPlace>& place);  ///< the file, and this process's node in it; `place`: the result
Finding check_own_ports();                    ///< WHERRY_PORTS: free ports on this host
Finding check_key();                          ///< WHERRY_KEY: the file exists, is private and holds a key
Finding check_libfabric();                    ///< the versions of this side
Finding check_provider(
    bool has_place);  ///< the module and libfabric's provider, tested by a stream of this process with itself
Finding check_network_memory();  ///< RLIMIT_MEMLOCK, for the providers that lock memory

// other_host.cc: names, route, MTU, ports and versions of one other host
std::vector<NamedFinding> check_other_host(const std::string& host);

/// Runs all of these checks. `host` empty: for each other host of WHERRY_HOSTS. Takes up to 2 s for a host that does
/// not answer. Never throws for a problem that it finds.
std::vector<NamedFinding> check_network(const std::string& host);

}  // namespace wherry::tools::doctor
