// SPDX-License-Identifier: Apache-2.0
//
// Which parts of mapped files were read recently. Long reads, and reads out of order, are copied from a mapping only
// the second time. The first page fault of a part costs more than one short system call, and as much as it saves for a
// long one.
#pragma once

#include <cstdint>

namespace wherry::file::mapped {

/// Bytes of a part: what the kernel maps by one fault.
inline constexpr std::uint64_t kPart = std::uint64_t{64} << 10;

/// Whether the part in which these bytes end was read before; records all of their parts as read. Only a hint: two
/// parts may share an entry, and all are forgotten when the table is half full. Thread-safe.
bool was_touched(std::uint64_t mapping, std::uint64_t offset, std::uint64_t bytes) noexcept;

}  // namespace wherry::file::mapped
