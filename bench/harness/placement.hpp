// SPDX-License-Identifier: Apache-2.0
// Where a host runs two virtual cores: as two cores of one cache, as two threads of one core, far from each other. A
// virtual machine is not told, and may be moved at any moment. Two short measurements tell one placement from another;
// figures taken in different ones cannot be compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wherry::bench {

/// What one short look at two cores finds.
struct Probe {
  double round_trip_ns = 0;  ///< of a cache line, to the other core and back
  double copy_gb_s = 0;      ///< GB/s through a small buffer that one core writes and the other reads
};

/// Probes that are alike.
struct Placement {
  Probe middle;  ///< medians
  std::size_t probes = 0;
};

/// Probes, sorted into placements by ratio: two are of one placement if both their measurements differ by less than a
/// factor of about 1.5. Nothing is known beforehand of how long a round trip is on any make.
struct Placements {
  std::vector<Placement> found{};  ///< that with the most probes first
  std::vector<std::size_t> of{};   ///< for each probe, the number of its placement
};

Placements classify(std::span<const Probe> probes);

/// Whether a probe that is not among those of `placements` is alike with the first of them and with no other more. True
/// if there are none.
bool is_of_largest(const Placements& placements, const Probe& probe);

}  // namespace wherry::bench
