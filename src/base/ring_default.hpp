// SPDX-License-Identifier: Apache-2.0
// Default sizes of rings, derived from the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace wherry {

struct Machine {
  std::size_t second_level_cache = 0;  ///< bytes of a core's L2; 0: unknown
  std::uint64_t memory = 0;            ///< bytes that this process and others of its control group may use; 0: unknown
};

/// A default and the reason for it.
struct Derived {
  std::uint64_t bytes;
  std::string from;  ///< "twice the L2 of 1M, at least 1M"
};

/// Returns what the kernel says of this machine, with the memory limit of the control group. Read once.
const Machine& this_machine();
/// @param root  prefix of /proc and /sys, for tests
/// @param core  whose caches are read
Machine machine_at(const std::filesystem::path& root, int core);

/// Returns twice the L2, but at most a 64th of the memory; a power of two of at least 1 MiB. Writing a line that the
/// other core still holds in its L2 is expensive. A ring of twice the L2 returns to a line after the reader has evicted
/// it.
Derived default_ring(const Machine& machine);

/// Returns the limit on the use of a peer's ring: a 16th of the memory, from 1 MiB to 1 GiB, a power of two.
Derived default_peer_ring(const Machine& machine);

/// Returns "64K" or "2M", as written in a variable. Whole units only.
std::string bytes_text(std::uint64_t bytes);

}  // namespace wherry
