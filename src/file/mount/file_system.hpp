// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "file/mount/delegations.hpp"
#include "file/mount/file_attributes.hpp"
#include "file/mount/file_names.hpp"
#include "file/mount/lock_service.hpp"
#include "file/mount/open_directories.hpp"
#include "file/mount/open_files.hpp"
#include "file/mount/served_tree.hpp"

namespace wherry::file::mount {

/// A host's files as the kernel asks for them: by node, not by name. Most calls send one or two requests to the server.
/// Only names are cached; writes to delegated files may be held back (WriteBehind).
class FileSystem {
 public:
  /// Connects as ServedTree does, and takes over what an earlier daemon left.
  FileSystem(const HostOptions& options, std::size_t connections, UniqueFd writes, const Keeping& keeping = {})
      : tree_(options, connections, std::move(writes), keeping),
        locks_(keeping),
        delegations_(options),
        names_(tree_),
        attributes_(tree_, delegations_),
        files_(tree_, attributes_, locks_),
        directories_(tree_) {
    if (keeping.left == nullptr) return;
    files_.restore(*keeping.left);
    directories_.restore(*keeping.left);
    locks_.locks().restore(*keeping.left, read_only(), [this](std::uint64_t number) { return files_.find(number); });
    keeping.descriptors->drop_rest();
  }

  [[nodiscard]] ServedTree& tree() { return tree_; }
  [[nodiscard]] const ServedTree& tree() const { return tree_; }
  [[nodiscard]] FileNames& names() { return names_; }
  [[nodiscard]] FileAttributes& attributes() { return attributes_; }
  [[nodiscard]] OpenFiles& files() { return files_; }
  [[nodiscard]] const OpenFiles& files() const { return files_; }
  [[nodiscard]] OpenDirectories& directories() { return directories_; }
  [[nodiscard]] LockService& locks() { return locks_; }
  [[nodiscard]] Delegations& delegations() { return delegations_; }
  [[nodiscard]] Passthrough& passthrough() { return files_.passthrough(); }

  [[nodiscard]] bool read_only() const { return tree_.hosts().read_only(); }

 private:
  ServedTree tree_;
  LockService locks_;
  Delegations delegations_;
  FileNames names_;
  FileAttributes attributes_;
  OpenFiles files_;
  OpenDirectories directories_;
};

}  // namespace wherry::file::mount
