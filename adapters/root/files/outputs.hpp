// SPDX-License-Identifier: Apache-2.0
// Remembers where the files that this process has written can be read. ROOT programs open a file that they wrote under
// the name that they used to write it.
#pragma once

#include <string>

namespace wherry::root {

// Thread-safe.

/// Remembers where the file can be read. Ignores an empty `output`.
void note_output(const std::string& address, const std::string& name, const std::string& output);
/// Returns the remembered output, or an empty string.
std::string noted_output(const std::string& address, const std::string& name);

}  // namespace wherry::root
