// SPDX-License-Identifier: Apache-2.0
//
// Text as people and programs read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wherry::tools {

/// Bytes from a peer or a directory as they may be shown on a terminal: control characters become \xNN.
std::string printable(std::string_view text);

/// "1.5 GB", "312 kB", "17 B": powers of 1000, as throughputs are given.
std::string human_bytes(std::uint64_t bytes);

/// "1 file", "2 files".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace wherry::tools
