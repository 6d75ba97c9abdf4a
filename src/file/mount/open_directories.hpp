// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "file/mount/numbered.hpp"
#include "file/mount/served_tree.hpp"

namespace wherry::file::mount {

/// A name of a directory.
struct ListedEntry {
  Host::Entry entry{};
  std::optional<Entry> known{};  ///< if its attributes are known
};

/// Directories that programs list. Functions return 0 or an errno value. Threads: any. Blocks as Host does.
class OpenDirectories {
 public:
  explicit OpenDirectories(ServedTree& tree) : tree_(tree) {}

  /// Takes over what an earlier daemon has left. Before any other call.
  void restore(const KeptSnapshot& left);
  /// Null: it is closed. Valid until `close`.
  [[nodiscard]] OpenDirectory* find(std::uint64_t number) const { return numbered_.find(number); }

  /// The directory is valid until `close`.
  int open(NodeId node, OpenDirectory*& directory);
  void close(const OpenDirectory& directory);
  /// Some entries behind `cookie`; none at the end. Only what the server is asked for in this call is told, so that no
  /// change that a program of the mount has made before is undone in the kernel's view; during one, nothing is kept.
  /// @param node  the directory's
  /// @param room  as of Host::list_with_status
  int list(NodeId node, const OpenDirectory& directory, std::uint64_t cookie, std::size_t room,
           std::vector<ListedEntry>& listed);
  [[nodiscard]] std::uint64_t inode_in(const OpenDirectory& directory, std::uint64_t inode) const;

 private:
  ServedTree& tree_;
  /// The kernel closes none of those that are open when the mount ends.
  Numbered<OpenDirectory> numbered_;
};

}  // namespace wherry::file::mount
