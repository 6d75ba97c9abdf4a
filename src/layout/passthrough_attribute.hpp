// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace wherry::layout {

/// By this extended attribute of a FUSE file system `wherry mount` tells programs of Wherry where a file's data lies:
/// the type of the host's file system (statfs), in decimal digits without a zero behind them. A file whose data is not
/// passed through has none; a directory has it if files below it may be passed through.
inline constexpr const char* kPassthroughAttribute = "wherry.passthrough";
inline constexpr std::size_t kMostPassthroughDigits = 20;

}  // namespace wherry::layout
