// SPDX-License-Identifier: Apache-2.0
// How much and which randomness: --operations=N and --seed=N, or WHERRY_TEST_OPERATIONS and WHERRY_TEST_SEED.
#pragma once

#include <chrono>
#include <cstdint>

namespace wherry::stress {

/// Longer than the test's watchdog allows: it never passes.
inline constexpr std::chrono::seconds kConnectTimeout{3600};

struct Options {
  std::uint64_t operations;  ///< sends on each fabric, of which each test takes its share; receives come on top
  std::uint64_t seed;
};

/// As given, else the environment's, else the defaults: three million operations, fewer under a sanitizer.
const Options& options();

/// True under a sanitizer, which makes system calls and threads of its own.
bool sanitized();

/// Takes the options out of the command line; called by main.
void read_options(int argc, char** argv);

}  // namespace wherry::stress
