// SPDX-License-Identifier: Apache-2.0
// Memory of this process's that may not be there. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::memory {

enum class Access : std::uint8_t { read, write };

/// Brings the pages of `memory` in, so that an access finds them: one system call, none per page. False: some of it is
/// not mapped, does not allow the access, or lies behind the end of its file; then nothing of it should be touched.
bool populate(std::span<const std::byte> memory, Access access);

/// Whether the kernel knows how to (Linux 5.14). Otherwise the answer comes from the list of mappings, and is dear.
bool can_populate();

/// The answer of populate(), for less where the memory is large: what has no file behind it is there if it is mapped,
/// and so is what lies in an arena, which cannot shrink. Also of memory that another thread is exposing: an access
/// waits until that is done.
bool is_there(std::span<const std::byte> memory, Access access);

}  // namespace wherry::memory
