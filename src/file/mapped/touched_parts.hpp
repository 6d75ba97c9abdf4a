// SPDX-License-Identifier: Apache-2.0
//
// Which parts of mapped files were read lately: long reads, and reads out of order, are copied from a mapping the
// second time. The first fault of a part costs more than one short call of the kernel's, and as much as it saves of a
// long one.
#pragma once

#include <cstdint>

namespace wherry::file::mapped {

/// Bytes of a part: as many as the kernel maps by one fault.
inline constexpr std::uint64_t kPart = std::uint64_t{64} << 10;

/// Whether the part of the mapping in which these bytes end was read before; notes that all of their parts are. Two
/// parts may be taken for one, and all are forgotten when the table is half full: this is a hint. From any thread.
bool was_touched(std::uint64_t mapping, std::uint64_t offset, std::uint64_t bytes) noexcept;

}  // namespace wherry::file::mapped
