// SPDX-License-Identifier: Apache-2.0
// Ways without a merge server: the workers make the output among themselves, or a second pass does.
#pragma once

#include <memory>

#include "bench/systems/root/program/task.hpp"

namespace wherry::bench::root {

/// Each worker writes files of its own; then they are merged as `hadd -f -fk` does.
std::unique_ptr<Server> make_hadd(const Task& task);
std::unique_ptr<Workshop> make_own_files(const Task& task);

/// Threads only.
std::unique_ptr<Workshop> make_buffer_merger(const Task& task);
std::unique_ptr<Workshop> make_ntuple_writer(const Task& task);

}  // namespace wherry::bench::root
