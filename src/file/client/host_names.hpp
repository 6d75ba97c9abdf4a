// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "file/client/host_link.hpp"

namespace wherry::file {

/// Calls on names: paths relative to the directory that the server serves; "." is that directory.
///
/// Functions return 0 or an errno value. After a reconnection, a repeated request that makes a name returns EIO if the
/// name exists and it is unknown who made it: the first attempt, or another program. Threads and blocking as in Host.
class HostNames {
 public:
  explicit HostNames(HostLink& link) : link_(link) {}

  /// @param follow  whether to follow a symbolic link in the last component
  int status(std::string_view name, bool follow, layout::FileStatus& status);
  int file_system(std::string_view name, layout::FileSystemStatus& status);
  int set_size(std::string_view name, std::uint64_t size);
  int set_mode(std::string_view name, std::uint32_t mode);
  /// layout::kFileOwnerKept leaves the user or the group unchanged.
  int set_owner(std::string_view name, bool follow, std::uint32_t user, std::uint32_t group);
  int set_times(std::string_view name, bool follow, const layout::FileTimes& times);

  int make_directory(std::string_view name, std::uint32_t mode);
  int make_node(std::string_view name, layout::FileNode type, std::uint32_t mode);
  int remove(std::string_view name, bool directory = false);
  /// `flags`: of layout::kFileRename...
  int rename(std::string_view from, std::string_view to, std::uint32_t flags = 0);
  /// For a rename that another Host of this process makes: `announce_rename` before it, `settle_rename` after it. Open
  /// files are then found under their new names if the server is restarted. See HostLink.
  void settle_rename(std::string_view from, std::string_view to, std::uint32_t flags, bool is_made);
  void announce_rename(std::string_view from, std::string_view to, std::uint32_t flags);
  /// Other names that a file may have by now because of announced or settled renames.
  [[nodiscard]] std::vector<std::string> later_names(std::string_view name);
  int link(std::string_view from, std::string_view to);
  int symlink(std::string_view name, std::string_view target);
  int read_link(std::string_view name, std::string& target);

 private:
  int call(layout::FileCall call, std::string_view name, std::string_view second = {}, std::uint32_t flags = 0,
           std::uint32_t mode = 0, std::uint64_t offset = 0, std::span<std::byte> payload = {});

  HostLink& link_;
};

}  // namespace wherry::file
