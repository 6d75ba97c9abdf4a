// SPDX-License-Identifier: Apache-2.0
// Where what this process has written can be read: ROOT programs open what they wrote under the name that they used.
#pragma once

#include <string>

namespace wherry::root {

// From any thread.

/// Remembers it. An empty output is not remembered.
void note_output(const std::string& address, const std::string& name, const std::string& output);
/// Empty if there is none.
std::string noted_output(const std::string& address, const std::string& name);

}  // namespace wherry::root
