// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/systems/file/chosen_ways.hpp"

namespace wherry::bench::file {

/// A line for each class of transfers: what both ways take, and which is chosen. Empty if there are none.
std::string explain(const std::vector<ChosenWay>& ways);

}  // namespace wherry::bench::file
