// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/systems.hpp"

namespace wherry::bench {

Systems built_in_systems() {
  Systems systems;
  add_wherry(systems);
  add_sockets(systems);
  return systems;
}

}  // namespace wherry::bench
