// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error of our programs.
#pragma once

#include <string>

namespace wherry {

/// Keeps the numbers 0, 1 and 2 out of use where they are closed: otherwise the next file or socket opened would get
/// one, and be read or written as the user's data. Reading and writing them fails with EBADF, as before; a program that
/// is executed later finds them closed. The first call in main().
void reserve_standard_descriptors() noexcept;

/// Writes out what stdout has buffered, and returns why that, or something written earlier, failed; empty if all is
/// well, or if standard output is closed and nothing was written. A file system that reports errors only at close is
/// asked, too. The last call before the exit status is decided.
std::string flush_standard_output();

}  // namespace wherry
