// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace wherry::merge {

/// Reads a file in a process forked for it. Empty if that process survived; else why the file is not to be read in this
/// one; `check`: after its structure was looked at. No other thread may be in ROOT meanwhile: the forked process would
/// wait for its locks.
std::string try_to_read(std::span<const std::byte> file, bool check);

}  // namespace wherry::merge
