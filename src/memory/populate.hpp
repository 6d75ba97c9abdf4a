// SPDX-License-Identifier: Apache-2.0
// Checks and prefaults memory of this process that may not be accessible. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::memory {

enum class Access : std::uint8_t { read, write };

/// Prefaults the pages of `memory` with one system call. False: some of it is not mapped, does not allow the access, or
/// lies behind the end of its file. Then the caller must not touch any of it.
bool populate(std::span<const std::byte> memory, Access access);

/// Whether the kernel has MADV_POPULATE_* (Linux 5.14). Otherwise populate() searches the list of mappings, which is
/// slow.
bool can_populate();

/// Returns the answer of populate(), but is faster for large memory: mapped memory without a file, or in an arena, is
/// always accessible, because an arena cannot shrink. Also true for memory that another thread is exposing: an access
/// waits until that is done.
bool is_there(std::span<const std::byte> memory, Access access);

}  // namespace wherry::memory
