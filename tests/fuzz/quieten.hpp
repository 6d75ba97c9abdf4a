// SPDX-License-Identifier: Apache-2.0
// What every fuzz target of shared memory sets before its first input.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace wherry::fuzz {

/// A job of its own, so that targets side by side do not meet; no spinning, statistics or warnings, which an input
/// would pay for a thousand times a second.
inline void quieten() {
  setenv("WHERRY_JOB", ("fuzz." + std::to_string(getpid())).c_str(), 1);
  setenv("WHERRY_SPIN", "0", 1);
  setenv("WHERRY_STATISTICS", "off", 1);
  setenv("WHERRY_LOG", "error", 1);
}

}  // namespace wherry::fuzz
