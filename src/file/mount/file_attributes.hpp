// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "file/mount/delegations.hpp"
#include "file/mount/served_tree.hpp"

namespace wherry::file::mount {

/// The attributes that a setattr request changes.
struct Changes {
  std::optional<std::uint32_t> mode{};
  std::optional<std::uint32_t> user{};
  std::optional<std::uint32_t> group{};
  std::optional<std::uint64_t> size{};
  std::optional<layout::FileTimes> times{};
};

/// Attributes of a mount's files. Functions return 0 or an errno value. Thread-safe. Blocks as Host does.
class FileAttributes {
 public:
  FileAttributes(ServedTree& tree, Delegations& delegations) : tree_(tree), delegations_(delegations) {}

  int get(NodeId node, struct stat& attributes);
  /// @param kept_for  how long the kernel may cache them
  int get(NodeId node, struct stat& attributes, Nodes::Clock::duration& kept_for);
  /// @param by  the open file that the program named, or null
  int change(NodeId node, const Changes& changes, const OpenFile* by, struct stat& attributes);
  int set_size(NodeId node, std::uint64_t size, const OpenFile* by);
  /// Removes the set-user-ID and set-group-ID bits, as the kernel does for a change by a user other than root.
  /// @param is_in_group  whether the program is in a group
  int drop_set_id(NodeId node, const std::function<bool(gid_t)>& is_in_group);
  int file_system(NodeId node, struct statvfs& status);

  /// Extended attributes, as in HostXattrs.
  int get_xattr(NodeId node, std::string_view attribute, std::vector<std::byte>& value);
  int list_xattrs(NodeId node, std::vector<std::byte>& names);
  int set_xattr(NodeId node, std::string_view attribute, std::span<const std::byte> value, std::uint32_t flags);
  int remove_xattr(NodeId node, std::string_view attribute);

 private:
  /// Asks an open file by look(OpenFile&), otherwise asks by name.
  template <class Look>
  int status(NodeId node, layout::FileStatus& status, Look look);
  int set_owner(NodeId node, const Changes& changes);
  int set_mode(NodeId node, std::uint32_t mode);
  int set_times(NodeId node, const layout::FileTimes& times);

  ServedTree& tree_;
  Delegations& delegations_;
};

}  // namespace wherry::file::mount
