// SPDX-License-Identifier: Apache-2.0
//
// A stream of this process with itself.
#pragma once

#include <cstddef>
#include <string>

namespace wherry::tools::doctor {

inline constexpr std::size_t kEchoBytes = 4096;

/// Listens on the address, connects to it, and sends kEchoBytes in both directions. The port must be `*`, so that a
/// check disturbs no job. Returns the time of connecting in microseconds. Throws std::exception whose text says what
/// failed.
double echo_with_itself(const std::string& address);

}  // namespace wherry::tools::doctor
