// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "file/wire/layout/wire.hpp"

namespace wherry::file::mount {

/// The kernel's number for a file of the mount. Never reused for another file.
using NodeId = std::uint64_t;
inline constexpr NodeId kRootNode = 1;

/// Identifies a file of the server. A reused inode number has another time of birth.
struct Identity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t born_seconds = 0;
  std::uint32_t born_nanoseconds = 0;
  std::uint32_t type = 0;  ///< the file type bits of its mode

  bool operator==(const Identity&) const = default;
};

Identity identity_of(const layout::FileStatus& status);

}  // namespace wherry::file::mount
