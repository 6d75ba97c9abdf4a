// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/systems/root/program/task.hpp"

namespace wherry::bench::root {

/// Throws std::runtime_error unless the output's tree has as many entries as all files of all workers together, and
/// the last of them can be read.
void check_output(const Task& task);
/// The same of an RNTuple.
void check_ntuple(const Task& task);

}  // namespace wherry::bench::root
