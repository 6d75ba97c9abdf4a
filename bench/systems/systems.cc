// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/systems.hpp"

namespace wherry::bench {

Systems built_in_systems() {
  Systems systems;
  add_wherry(systems);
  add_wherry_zerocopy(systems);
  add_sockets(systems);
  add_pipe(systems);
  add_memcpy_limits(systems);
  add_kernel_copy_limit(systems);
  add_two_copy_limit(systems);
  add_slot_limits(systems);
  add_split_copy_limit(systems);
  add_wake_limits(systems);
  return systems;
}

}  // namespace wherry::bench
