// SPDX-License-Identifier: Apache-2.0
// The processes of one sample of a LinkSystem, for systems whose ranks do not all run on this host.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "bench/harness/sample_memory.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench {

/// Forks a process for each of these ranks, and returns when all have done their parts. Throws std::runtime_error with
/// the reason of the first that failed; the others are killed then.
void run_ranks(LinkSystem& system, const Sample& sample, SampleMemory& shared, std::span<const std::uint32_t> ranks,
               const std::string& name);

/// Adds up what all ranks reported. Throws std::runtime_error if a report is missing, or the payload was altered.
[[nodiscard]] Outcome add_up(SampleMemory& shared, const Sample& sample);

}  // namespace wherry::bench
