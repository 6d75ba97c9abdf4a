// SPDX-License-Identifier: Apache-2.0
//
// wherry top --files: what the clients of this user's caches of files have counted (docs/files.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "file/cache.hpp"

namespace wherry::tools {

struct FileClientReading {
  std::string card;  ///< job and node, as they stand in the name of the segment
  std::uint64_t pid = 0;
  std::string program;  ///< printable; empty if it has ended
  file::Counts counts;  ///< since it became a client
};

struct FilesReading {
  std::uint64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  std::vector<FileClientReading> clients;
};

/// Segments that cannot be mapped (damaged, of another pid namespace) are left out.
FilesReading read_file_clients();

/// A line for each client and one for all. At most `lines` lines (0: all) of at most `columns` characters (0: any).
std::string top_files_text(const FilesReading& before, const FilesReading& now, std::size_t lines, std::size_t columns);
/// One JSON object in one line.
std::string top_files_json(const FilesReading& before, const FilesReading& now);

}  // namespace wherry::tools
