// SPDX-License-Identifier: Apache-2.0
// How many messages make a sample.
#pragma once

#include <cstdint>

#include "bench/harness/options.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench {

/// For the warm-up sample: few enough for the slowest system.
std::uint64_t first_messages(const Sample& sample, const Options& options);

/// For the samples that count, from what the warm-up sample took: as many as fit into the wanted time, and no more than
/// the wanted bytes. Of each sender; round trips for latency.
std::uint64_t messages_for(const Sample& sample, const Outcome& warm_up, const Options& options);

}  // namespace wherry::bench
