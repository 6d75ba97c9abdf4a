// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/systems.hpp"

#include "bench/systems/file/systems.hpp"
#include "bench/systems/mailbox/systems.hpp"
#include "bench/systems/modules.hpp"
#include "bench/systems/mpi/systems.hpp"
#include "bench/systems/net/systems.hpp"
#include "bench/systems/programs/programs.hpp"
#include "bench/systems/programs/zmq_programs.hpp"
#include "bench/systems/root/systems.hpp"

/// Calls add_NAME(Registry&), which a file of a folder here defines and which needs no other declaration.
#define WHERRY_ADD(name)      \
  void add_##name(Registry&); \
  add_##name(registry)

namespace wherry::bench {

Registry find_systems(const std::shared_ptr<net::Hosts>& hosts) {
  Registry registry;
  WHERRY_ADD(streams);
  WHERRY_ADD(messages);
  WHERRY_ADD(sockets);
  WHERRY_ADD(pipe);
  WHERRY_ADD(memcpy_limits);
  WHERRY_ADD(kernel_copy_limit);
  WHERRY_ADD(two_copy_limit);
  WHERRY_ADD(slot_limits);
  WHERRY_ADD(split_copy_limit);
  WHERRY_ADD(wake_limits);
  add_modules(registry);
  add_programs(registry);
  add_zmq_programs(registry);
  root::add_systems(registry);
  file::add_systems(registry);
  mailbox::add_systems(registry);
  mpi::add_systems(registry);
  net::add_systems(registry, hosts);
  return registry;
}

}  // namespace wherry::bench
