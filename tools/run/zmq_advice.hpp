// SPDX-License-Identifier: Apache-2.0
//
// Advice about a program before its libzmq is replaced: that it cannot be replaced, or which features the replacement
// lacks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace wherry::tools {

/// Returns sentences for the user, without a newline; none if there is no advice. `replacement` is the libzmq that
/// `program` will use. Asks the dynamic loader which libzmq the program would have used in the current environment.
std::vector<std::string> zmq_advice(const std::filesystem::path& program, const std::filesystem::path& replacement);

}  // namespace wherry::tools
