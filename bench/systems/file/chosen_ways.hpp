// SPDX-License-Identifier: Apache-2.0
// What the path `auto` chose for the transfers of a program, as the program's statistics page shows it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/transfer_class.hpp"

namespace wherry::bench::file {

/// A class of transfers of which there were some.
struct ChosenWay {
  struct Way {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
    std::uint64_t estimate_ns = 0;  ///< for the least bytes of the class; 0: not measured
    std::uint64_t explored = 0;     ///< of the calls: those that tried the slower way
  };
  std::uint64_t place = 0;  ///< among layout::kTransferClasses
  Way host{};
  Way kernel{};
};

/// One for each class, for processes that share memory: a job's worker tells them so.
using WayCounts = std::array<ChosenWay, layout::kTransferClasses>;

/// Of this process, by its own descriptors. All without calls: it has chosen nothing.
void read_own_ways(WayCounts& counts);

std::vector<ChosenWay> used_ways(const WayCounts& counts);

}  // namespace wherry::bench::file
