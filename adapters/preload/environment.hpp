// SPDX-License-Identifier: Apache-2.0
//
// What the environment of each program that this process executes must have in it, so that it is seen too.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/visible.hpp"

namespace wherry::preload {

/// Keeps the variables of the table as they are now, and where this library lies. Once, when it is loaded.
void keep_environment() noexcept;

/// How many words `complete` may need beside those of `given`.
inline constexpr std::size_t kMostVariables = 8;
/// The number of variables in a null-ended list; ProgramMemory::kUnreadable: the kernel will refuse it with EFAULT.
std::size_t count_variables(char* const* given) noexcept;

/// The list `given`, which can be read, with what it lacks of the variables kept; itself if it lacks nothing. `room`
/// has count_variables() + kMostVariables + 1 words, `text` as many bytes as text_for() says. Where the program's
/// loader is foreign, LD_PRELOAD is without this library instead.
char* const* complete(char* const* given, Sight sight, std::span<char*> room, std::span<char> text) noexcept;
/// The bytes that `complete` wants for its text.
std::size_t text_for(char* const* given) noexcept;

}  // namespace wherry::preload
