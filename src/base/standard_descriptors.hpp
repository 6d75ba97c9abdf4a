// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error of Wherry's programs.
#pragma once

#include <string>

namespace wherry {

/// Occupies those of the numbers 0, 1 and 2 that are closed. Otherwise the next file or socket opened would get one,
/// and be read or written as the user's data. Reading and writing them still fails with EBADF, and a program executed
/// later finds them closed. Must be the first call in main().
void reserve_standard_descriptors() noexcept;

/// Flushes stdout. Returns why this, or an earlier write, failed; empty if all is well, or if standard output is closed
/// and nothing was written. Also asks file systems that report errors only at close. Must be the last call before the
/// exit status is decided.
std::string flush_standard_output();

}  // namespace wherry
