// SPDX-License-Identifier: Apache-2.0
//
// Completes the environment of each program that this process executes, so that the library is loaded there, too.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/preload_support.hpp"

namespace wherry::preload {

/// Keeps the variables of the table as they are now, and the path of this library. To be called once, when it is
/// loaded.
void keep_environment() noexcept;

/// Words that `complete` may add to those of `given`.
inline constexpr std::size_t kMostVariables = 14;
/// Returns the number of variables in a null-terminated list, or ProgramMemory::kUnreadable if the kernel would refuse
/// it with EFAULT.
std::size_t count_variables(char* const* given) noexcept;

/// Returns `given`, which must be readable, with the kept variables that it lacks; `given` itself if it lacks none.
/// `room` has count_variables() + kMostVariables + 1 words, `text` has text_for() bytes. If the program's loader is
/// incompatible, this library is removed from LD_PRELOAD.
char* const* complete(char* const* given, PreloadSupport support, std::span<char*> room, std::span<char> text) noexcept;
/// Bytes that `complete` needs for its text.
std::size_t text_for(char* const* given) noexcept;

}  // namespace wherry::preload
