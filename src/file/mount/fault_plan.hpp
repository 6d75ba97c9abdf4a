// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace wherry::file::mount {

/// For tests: makes this process pass its fault points as the plan in a file says (layout/fault_plan.hpp), until it
/// ends. Once. Throws Error.
void follow_fault_plan(const std::string& file);

}  // namespace wherry::file::mount
