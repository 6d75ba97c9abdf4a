// SPDX-License-Identifier: Apache-2.0
// Files in the receiver's windows: adapters/root/.
#pragma once

#include <memory>

#include "bench/systems/root/program/task.hpp"

namespace wherry::bench::root {

std::unique_ptr<Server> make_window_server(const Task& task);
/// What wherry-merge runs below its supervisor.
std::unique_ptr<Server> make_merge_server(const Task& task);
std::unique_ptr<Workshop> make_window_workshop(const Task& task);

}  // namespace wherry::bench::root
