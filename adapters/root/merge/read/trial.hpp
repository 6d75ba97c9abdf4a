// SPDX-License-Identifier: Apache-2.0
// Finds out, in another process, whether a file crashes ROOT.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace wherry::merge {

/// Reads a file in a forked process. Returns an empty string if that process survived, else why this process must not
/// read the file. No other thread may be in ROOT meanwhile: the forked process would wait forever for its locks.
/// @param check  check the structure of the file first (image_check.hpp)
std::string try_to_read(std::span<const std::byte> file, bool check);

}  // namespace wherry::merge
