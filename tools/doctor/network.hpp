// SPDX-License-Identifier: Apache-2.0
//
// `wherry doctor --network [HOST]`: whether other hosts can be reached, and what to change where they cannot.
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
Finding check_hosts(std::shared_ptr<const OwnPlace>& place);  ///< the file and the own node in it; `place`: its result
Finding check_own_ports();                                    ///< WHERRY_PORTS: free here
Finding check_key();                                          ///< WHERRY_KEY: there, private, a key
Finding check_libfabric();                                    ///< versions of this side
Finding check_provider(bool has_place);  ///< the module and libfabric's provider: a stream of this process with itself
Finding check_network_memory();          ///< RLIMIT_MEMLOCK, for the providers that lock memory

// other_host.cc: names, route, MTU, ports, versions of one other host
std::vector<NamedFinding> check_other_host(const std::string& host);

/// All of them. `host` empty: each other host of WHERRY_HOSTS. Takes up to 2 s for a host that does not answer. None
/// throws for what it finds.
std::vector<NamedFinding> check_network(const std::string& host);

}  // namespace wherry::tools::doctor
