// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "file/client/host.hpp"
#include "file/mount/write_buffer.hpp"
#include "file/mount/write_ring.hpp"

namespace wherry::file::mount {

/// The result for one file of which a killed mount had kept writes.
struct Replayed {
  std::string name{};
  Identity identity{};      ///< without its type
  std::uint64_t bytes = 0;  ///< bytes written by this replay
  /// 0, or why the rest is lost. ESTALE: the file was replaced or removed, or others have written to it.
  int error = 0;
};

/// Compares identities without their types.
[[nodiscard]] bool is_same_file(Identity one, const Identity& other);

/// Returns the names that a file is known to have now, the most likely first.
using LaterNames = std::function<std::vector<std::string>(const Identity&)>;

/// Sealed rings of a killed mount.
using LeftRings = std::map<WriteBuffer::FileNumber, std::unique_ptr<WriteRing>>;

/// Writes to the server what a killed mount left, and empties the memory. Looks for each file under the names from
/// `names`, under the recorded name, and where announced renames lead these names. Blocks as Host does.
/// @param tell  called for each file, before the memory forgets it
/// @param rings  writes that follow those in the memory
std::vector<Replayed> replay(WriteBuffer& left, Host& host, const std::function<void(const Replayed&)>& tell = {},
                             const LaterNames& names = {}, const LeftRings& rings = {});

}  // namespace wherry::file::mount
