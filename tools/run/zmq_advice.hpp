// SPDX-License-Identifier: Apache-2.0
//
// What is to be said of a program before its libzmq is replaced: that it cannot be, or what the other one lacks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace wherry::tools {

/// Sentences for the user, without a newline; none if there is nothing to say. `replacement` is the libzmq that
/// `program` is going to use. Asks the dynamic loader, with the environment as it is, which libzmq it would have used.
std::vector<std::string> zmq_advice(const std::filesystem::path& program, const std::filesystem::path& replacement);

}  // namespace wherry::tools
