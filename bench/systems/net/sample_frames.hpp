// SPDX-License-Identifier: Apache-2.0
// Samples and reports as JSON, for the other host (layout/control_frame.hpp).
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "bench/harness/sample_memory.hpp"
#include "bench/harness/system.hpp"

namespace wherry::bench::net {

/// How many latencies each rank notes.
[[nodiscard]] std::size_t latencies_of(const Sample& sample);

/// Without cores: hosts need not have the same.
[[nodiscard]] nlohmann::json to_json(const Sample& sample);
/// Throws std::runtime_error if a value is missing or out of range.
[[nodiscard]] Sample sample_of(const nlohmann::json& json);

/// What this rank reported and measured.
[[nodiscard]] nlohmann::json result_of(SampleMemory& shared, std::uint32_t rank);
/// Stores what the other host sent. Throws std::runtime_error if a value is missing, or the latencies do not fit.
void store_result(const nlohmann::json& json, SampleMemory& shared, std::uint32_t rank);

}  // namespace wherry::bench::net
