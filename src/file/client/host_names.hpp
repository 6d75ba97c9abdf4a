// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "file/client/host_link.hpp"

namespace wherry::file {

/// What a host's server is asked for by name: paths relative to the directory that it serves, "." is that directory.
///
/// Functions return 0 or an errno value. Requests that make a name, and prove to be undecidable after a server was
/// started again (the name is there: made by the first attempt, or by another program), return EIO. Threads and
/// blocking as of Host.
class HostNames {
 public:
  explicit HostNames(HostLink& link) : link_(link) {}

  /// @param follow  the last symbolic link
  int status(std::string_view name, bool follow, layout::FileStatus& status);
  int file_system(std::string_view name, layout::FileSystemStatus& status);
  int set_size(std::string_view name, std::uint64_t size);
  int set_mode(std::string_view name, std::uint32_t mode);
  /// A user or group of layout::kFileOwnerKept stays as it is.
  int set_owner(std::string_view name, bool follow, std::uint32_t user, std::uint32_t group);
  int set_times(std::string_view name, bool follow, const layout::FileTimes& times);

  int make_directory(std::string_view name, std::uint32_t mode);
  int make_node(std::string_view name, layout::FileNode type, std::uint32_t mode);
  int remove(std::string_view name, bool directory = false);
  /// `flags`: of layout::kFileRename...
  int rename(std::string_view from, std::string_view to, std::uint32_t flags = 0);
  /// Before and after the same rename by another Host of this process: open files are found under their new names if
  /// the server is started again. As of HostLink.
  void settle_rename(std::string_view from, std::string_view to, std::uint32_t flags, bool is_made);
  void announce_rename(std::string_view from, std::string_view to, std::uint32_t flags);
  /// Where renames that were announced or noted so lead a name: other names by which its file may be found by now.
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
