// SPDX-License-Identifier: Apache-2.0
// Included first by every header that needs C++20: with an older standard the compiler reports one error, not a
// hundred.
#pragma once

#if __cplusplus < 201709L  // the value of gcc 10 with -std=c++20
#error "Wherry needs C++20: compile with -std=c++20"
#include <wherry-needs-c++20/compile-with-std-c++20>  // Compilers continue after #error, but not after this.
#endif
