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

/// An entry of a directory.
struct ListedEntry {
  Host::Entry entry{};
  std::optional<Entry> known{};  ///< if its attributes are known
};

/// Directories that programs list. Functions return 0 or an errno value. Thread-safe. Blocks as Host does.
class OpenDirectories {
 public:
  explicit OpenDirectories(ServedTree& tree) : tree_(tree) {}

  /// Takes over what an earlier daemon has left. Must be the first call.
  void restore(const KeptSnapshot& left);
  /// Null: it is closed. Valid until `close`.
  [[nodiscard]] OpenDirectory* find(std::uint64_t number) const { return numbered_.find(number); }

  /// `directory` is valid until `close`.
  int open(NodeId node, OpenDirectory*& directory);
  void close(const OpenDirectory& directory);
  /// Returns some entries after `cookie`; none at the end. Returns only what the server answers to this call, so that
  /// the kernel does not see older data than a change by a program of this mount. During such a change the kernel
  /// caches nothing.
  /// @param node  of the directory
  /// @param room  as in Host::list_with_status
  int list(NodeId node, const OpenDirectory& directory, std::uint64_t cookie, std::size_t room,
           std::vector<ListedEntry>& listed);
  [[nodiscard]] std::uint64_t inode_in(const OpenDirectory& directory, std::uint64_t inode) const;

 private:
  ServedTree& tree_;
  /// When the mount ends, the kernel does not close the open ones.
  Numbered<OpenDirectory> numbered_;
};

}  // namespace wherry::file::mount
