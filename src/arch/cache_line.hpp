// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace wherry::arch {

/// Distance in bytes that keeps two words out of each other's cache line. A constant, not
/// std::hardware_destructive_interference_size: shared layouts are spaced by it, and must not change with the compiler
/// or its flags. 64 is the line of every x86 and of nearly every AArch64. On CPUs with longer lines (128 on some) it
/// costs speed, not correctness.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace wherry::arch
