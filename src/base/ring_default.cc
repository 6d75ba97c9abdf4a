// SPDX-License-Identifier: Apache-2.0
#include "base/ring_default.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <exception>

#include "base/caches.hpp"
#include "base/cgroup.hpp"
#include "base/found_once.hpp"

namespace wherry {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
constexpr std::uint64_t kMost = std::uint64_t{1} << 30;

/// Fractions of the memory. A process may have many rings of its own, all busy. The peers choose the sizes of their own
/// rings, which limit the size of a message.
constexpr std::uint64_t kPartForARing = 64;
constexpr std::uint64_t kPartForAPeersRing = 16;

/// Returns the size of the L2. On x86 the C library reads it from the processor at once; otherwise a dozen files are
/// read.
std::size_t second_level_cache(const fs::path& root, int core) {
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (root == "/") {
    if (const auto bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return static_cast<std::size_t>(bytes);
  }
#endif
  const fs::path folder = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(core)) / "cache";
  for (const Cache& cache : caches_in(folder)) {
    if (cache.level == 2) return cache.bytes;
  }
  return 0;
}

Derived bound_by(const Machine& machine, std::uint64_t part) {
  if (machine.memory == 0) return {kMost, "the most, as memory is unknown"};
  const std::uint64_t bound = std::bit_floor(std::clamp(machine.memory / part, kLeast, kMost));
  return {bound, "at most 1/" + std::to_string(part) + " of " + std::to_string(machine.memory >> 20) +
                     "M of memory, at least 1M"};
}

}  // namespace

const Machine& this_machine() {
  static constinit FoundOnce<Machine> machine;
  return machine.get([] {
    try {
      return machine_at("/", first_core());
    } catch (const std::exception&) {
      return Machine{};
    }
  });
}

Machine machine_at(const fs::path& root, int core) {
  Machine machine{.second_level_cache = second_level_cache(root, core)};
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  if (pages > 0)
    machine.memory = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (const auto limit = cgroup_memory_limit(root); limit && (machine.memory == 0 || *limit < machine.memory)) {
    machine.memory = *limit;
  }
  return machine;
}

Derived default_ring(const Machine& machine) {
  if (machine.second_level_cache == 0) return {kLeast, "the least, as the L2 is unknown"};
  const std::uint64_t wanted = std::bit_ceil(2 * std::uint64_t{machine.second_level_cache});
  Derived bound = bound_by(machine, kPartForARing);
  if (bound.bytes < wanted) return bound;
  return {std::max(wanted, kLeast), "twice the L2 of " + bytes_text(machine.second_level_cache) + ", at least 1M"};
}

Derived default_peer_ring(const Machine& machine) { return bound_by(machine, kPartForAPeersRing); }

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits{"", "K", "M", "G"};
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits.at(unit);
}

}  // namespace wherry
