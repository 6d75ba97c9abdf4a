// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "bench/harness/campaign.hpp"
#include "bench/harness/options.hpp"
#include "bench/harness/registry.hpp"

namespace wherry::bench {

/// How a run was made, for the "environment" of its JSON: options, systems with versions and settings, those that are
/// not here and why, what failed, how busy others were, and which placement of the cores counted.
nlohmann::json describe_run(const Options& options, const Registry& registry, std::span<System* const> systems,
                            const Circumstances& circumstances);

}  // namespace wherry::bench
