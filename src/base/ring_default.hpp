// SPDX-License-Identifier: Apache-2.0
// How large a ring is by default, from what the machine is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace wherry {

struct Machine {
  std::size_t second_level_cache = 0;  ///< bytes of a core's; 0: unknown
  std::uint64_t memory = 0;            ///< bytes that this process and its like may use; 0: unknown
};

/// A default and why it is so.
struct Derived {
  std::uint64_t bytes;
  std::string from;  ///< "twice the L2 of 1M, at least 1M"
};

/// As the kernel describes this machine, and the memory limit of the control group. Read once.
const Machine& this_machine();
/// @param root  in front of /proc and /sys; another one for tests
/// @param core  the one that is asked for its caches
Machine machine_at(const std::filesystem::path& root, int core);

/// A power of two of at least 1 MiB: twice the L2, but no more than a 64th of the memory. A line that the other core
/// still holds in its L2 is dear to write; a ring of twice the L2 comes round to it after the reader has evicted it.
Derived default_ring(const Machine& machine);

/// How much of a peer's ring is used: a 16th of the memory, at least 1 MiB and at most 1 GiB, a power of two.
Derived default_peer_ring(const Machine& machine);

/// "64K", "2M": as it would be written in a variable. Whole units only.
std::string bytes_text(std::uint64_t bytes);

}  // namespace wherry
