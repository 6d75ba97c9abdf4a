// SPDX-License-Identifier: Apache-2.0
//
// A stream of this process with itself.
#pragma once

#include <cstddef>
#include <string>

namespace wherry::tools::doctor {

inline constexpr std::size_t kEchoBytes = 4096;

/// Listens at that address, whose port is `*` so that a check disturbs no job, connects, and sends kEchoBytes there and
/// back. Returns the microseconds that connecting took. Throws std::exception that says what failed.
double echo_with_itself(const std::string& address);

}  // namespace wherry::tools::doctor
