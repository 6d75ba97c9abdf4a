// SPDX-License-Identifier: Apache-2.0
// Every header that needs C++20 includes this one first: an older standard then has one error, and not a hundred.
#pragma once

#if __cplusplus < 201709L  // what gcc 10 says of -std=c++20
#error "Wherry needs C++20: compile with -std=c++20"
#include <wherry-needs-c++20/compile-with-std-c++20>  // Compilers go on after #error, but not after this.
#endif
