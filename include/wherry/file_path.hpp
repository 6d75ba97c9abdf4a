// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <cstddef>
#include <cstdint>

namespace wherry::files {

/// How a read is served (docs/files.md). Writes are the kernel's or the host's own calls on every path.
enum class Path : std::uint8_t {
  automatic,  ///< a file of this machine: `cache` where that is faster, else `kernel`; a file of a host: `host`
  kernel,     ///< the kernel's own call, nothing is mapped; EOPNOTSUPP for a file of a host
  cache,      ///< copied from the kernel's page cache, without a system call; EOPNOTSUPP for a file of a host
  card,       ///< reserved for files of a card's mount; not implemented: EOPNOTSUPP
  host,       ///< the host's server, straight into the caller's buffer; EOPNOTSUPP for a file of this machine
};
inline constexpr std::size_t kPaths = 5;

}  // namespace wherry::files
