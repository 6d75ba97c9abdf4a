// SPDX-License-Identifier: Apache-2.0
// What one process of a sample does with its link.
#pragma once

#include <cstdint>
#include <string>

#include "bench/harness/sample_memory.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench {

/// Keeps the calling thread on this core. Throws std::system_error.
void pin(int core);

/// Pins this process to the core of its rank, if the sample has one for it. Throws std::system_error.
void pin(const Sample& sample, std::uint32_t rank);

/// Opens the link, warms it up, takes its part between the two barriers, and leaves what it measured in its report. To
/// be called in a process of its own. Throws what the system throws.
void take_part(LinkSystem& system, const Sample& sample, SampleMemory& shared, std::uint32_t rank,
               const std::string& name);

}  // namespace wherry::bench
