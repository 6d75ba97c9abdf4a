// SPDX-License-Identifier: Apache-2.0
#include "file/mount/open_directories.hpp"

#include <cerrno>
#include <utility>

namespace wherry::file::mount {

int OpenDirectories::open(NodeId node, OpenDirectory*& directory) {
  std::unique_ptr<Hosts::File> opened;
  layout::FileStatus status{};
  const std::uint32_t flags = layout::kFileOpenRead | layout::kFileOpenDirectory | layout::kFileOpenNoFollow;
  if (const int error = tree_.open(node, flags, opened, status); error != 0) return error;
  auto made = std::make_unique<OpenDirectory>(std::move(opened), status.device);
  directory = made.get();
  const std::lock_guard lock(mutex_);
  open_.emplace(directory, std::move(made));
  return 0;
}

void OpenDirectories::close(const OpenDirectory* directory) {
  std::unique_lock lock(mutex_);
  const auto closed = open_.extract(directory);
  lock.unlock();
}

int OpenDirectories::list(NodeId node, const OpenDirectory& directory, std::uint64_t cookie, std::size_t room,
                          std::vector<ListedEntry>& listed) {
  const ServedTree::KeptNames kept = tree_.keep_names();
  const Hosts::File& file = directory.file();
  std::vector<Host::Entry> entries;
  const OwnChanges::Look look(tree_.own_changes());
  // The server would look at the mount point, and wait for itself.
  const int error = tree_.has_hidden(node) ? file.use()->list(file.handle(), cookie, entries)
                                           : file.use()->list_with_status(file.handle(), cookie, room, entries);
  if (error != 0) return error;
  tree_.nodes().note_list(node);
  const Nodes::Clock::duration kept_for = look.is_undisturbed() ? kKept : Nodes::Clock::duration{};
  for (Host::Entry& entry : entries) {
    ListedEntry& one = listed.emplace_back();
    if (entry.status) {
      one.known = tree_.refer(node, entry.name, *entry.status);
      // Reads ask for the size of a file that is open.
      if (!tree_.nodes().is_open(one.known->node)) one.known->name_kept_for = one.known->attributes_kept_for = kept_for;
    }
    one.entry = std::move(entry);
  }
  return 0;
}

std::uint64_t OpenDirectories::inode_in(const OpenDirectory& directory, std::uint64_t inode) const {
  return tree_.inode_of(inode, directory.device());
}

}  // namespace wherry::file::mount
