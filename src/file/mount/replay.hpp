// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "file/client/host.hpp"
#include "file/mount/write_buffer.hpp"

namespace wherry::file::mount {

/// What came of a file of which a mount that was killed had kept writes.
struct Replayed {
  std::string name{};
  Identity identity{};      ///< without its type
  std::uint64_t bytes = 0;  ///< written now
  /// 0, or why the rest is lost. ESTALE: it is another file by now, or others have written to it.
  int error = 0;
};

/// The same, whatever their types.
[[nodiscard]] bool is_same_file(Identity one, const Identity& other);

/// The names that a file has by now as far as is known, the likeliest first.
using LaterNames = std::function<std::vector<std::string>(const Identity&)>;

/// Writes to the server what such a mount left, and empties the memory. A file is looked for under the names that are
/// given, under the one that was noted, and where renames lead these that the host has been announced. Blocks as Host
/// does.
/// @param tell  of each file, before the memory forgets it
std::vector<Replayed> replay(WriteBuffer& left, Host& host, const std::function<void(const Replayed&)>& tell = {},
                             const LaterNames& names = {});

}  // namespace wherry::file::mount
