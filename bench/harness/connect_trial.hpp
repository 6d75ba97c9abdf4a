// SPDX-License-Identifier: Apache-2.0
//
// One sample of `wherry bench connect`: two processes, of which one connects again and again and the other accepts;
// both keep what they got.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/harness/system.hpp"

namespace wherry::bench {

/// What there was when a number of connections was reached. Both processes together.
struct ConnectStep {
  std::uint32_t connections = 0;
  std::vector<double> connect_ns;  ///< of those since the step before: until both sides had the connection
  /// Beyond what one connection less needs; of all connections of this step and before.
  double memory_bytes = 0;  ///< proportional set size, without what files back
  double kernel_bytes = 0;  ///< the kernel's own small objects (slabs), of the whole machine
  double descriptors = 0;
};

struct ConnectTrial {
  double listen_ns = 0;  ///< to register the port that is connected to
  std::vector<ConnectStep> steps;
};

constexpr std::uint32_t kMostConnections = 10'000;

/// Opens connections up to each of the ascending numbers. Throws std::runtime_error.
ConnectTrial try_connections(System& system, std::span<const std::uint32_t> numbers);

}  // namespace wherry::bench
