// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "file/mount/served_tree.hpp"

namespace wherry::file::mount {

/// Looks up, makes and removes names in a mount's directories. Functions return 0 or an errno value. Thread-safe.
/// Blocks as Host does.
class FileNames {
 public:
  explicit FileNames(ServedTree& tree) : tree_(tree) {}

  int look_up(NodeId parent, std::string_view name, Entry& entry);
  int read_link(NodeId node, std::string& target);

  /// Makes a file, a FIFO or a socket, by the type in `mode`; EPERM for others.
  int make_file(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry);
  int make_directory(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry);
  int symlink(NodeId parent, std::string_view name, std::string_view target, Entry& entry);
  int link(NodeId node, NodeId parent, std::string_view name, Entry& entry);
  int remove(NodeId parent, std::string_view name, bool directory);
  /// `flags` of renameat2.
  int rename(NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name, unsigned flags);

 private:
  int make_node_kept(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry);
  bool was_renamed(const std::string& from, const std::string& to, std::uint64_t moved);
  bool was_removed(NodeId parent, std::string_view name, const std::string& path, std::uint64_t removed);
  int look_up_kept(NodeId parent, std::string_view name, Entry& entry);

  ServedTree& tree_;
};

}  // namespace wherry::file::mount
