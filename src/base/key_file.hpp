// SPDX-License-Identifier: Apache-2.0
// The key that processes on different hosts prove to each other to hold: WHERRY_KEY, a file that `wherry key` makes.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace wherry {

using Key = std::array<std::byte, 32>;

/// Makes a file of mode 0600 with a random key. Throws Error: EEXIST (a file is never overwritten), and as open does.
void make_key_file(const std::string& file);

/// Throws Error that says what to do: EACCES if other users may read or write the file, or own it; EINVAL if it holds
/// no key; and as open does.
Key read_key_file(const std::string& file);

}  // namespace wherry
