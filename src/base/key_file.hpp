// SPDX-License-Identifier: Apache-2.0
// The key by which processes on different hosts authenticate each other: WHERRY_KEY, a file made by `wherry key`.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace wherry {

using Key = std::array<std::byte, 32>;

/// Makes a file of mode 0600 with a random key. Throws Error: EEXIST (a file is never overwritten), and as open does.
void make_key_file(const std::string& file);

/// Reads a key file. Throws Error: EACCES if other users may read or write the file, or if another user than root owns
/// it; EINVAL if it holds no key; and as open does.
Key read_key_file(const std::string& file);

}  // namespace wherry
