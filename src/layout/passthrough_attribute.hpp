// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace wherry::layout {

/// The extended attribute of a FUSE file system by which `wherry mount` tells Wherry's programs where a file's data
/// lies. Its value is the type of the host's file system (statfs) in decimal digits, not NUL-terminated. A file has it
/// only if its data is passed through. A directory has it if files below it may be passed through.
inline constexpr const char* kPassthroughAttribute = "wherry.passthrough";
inline constexpr std::size_t kMostPassthroughDigits = 20;

}  // namespace wherry::layout
