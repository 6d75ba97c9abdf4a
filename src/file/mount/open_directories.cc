// SPDX-License-Identifier: Apache-2.0
#include "file/mount/open_directories.hpp"

#include <cerrno>
#include <utility>

namespace wherry::file::mount {

void OpenDirectories::restore(const KeptSnapshot& left) {
  for (const auto& [number, open] : left.open) {
    if ((open.flags & layout::kFileOpenDirectory) == 0) continue;
    const auto directory = std::make_shared<OpenDirectory>(tree_.resume(open.node, number, open.flags), open.device);
    directory->set_number(number);
    numbered_.add(number, directory);
  }
}

int OpenDirectories::open(NodeId node, OpenDirectory*& directory) {
  std::unique_ptr<Hosts::File> opened;
  layout::FileStatus status{};
  const std::uint32_t flags = layout::kFileOpenRead | layout::kFileOpenDirectory | layout::kFileOpenNoFollow;
  if (const int error = tree_.open(node, flags, opened, status); error != 0) return error;
  const auto made = std::make_shared<OpenDirectory>(std::move(opened), status.device);
  directory = made.get();
  directory->set_number(tree_.next_number());
  KeptState::Batch(tree_.kept())
      .add_open({.head = {},
                 .number = directory->number(),
                 .node = node,
                 .request = 0,
                 .device = status.device,
                 .file_system = 0,
                 .flags = flags,
                 .mode = status.mode,
                 .backing = 0,
                 .errors = 0});
  numbered_.add(directory->number(), made);
  return 0;
}

void OpenDirectories::close(const OpenDirectory& directory) {
  KeptState::Batch(tree_.kept()).add(layout::KeptWord::closed, directory.number());
  numbered_.remove(directory.number()).reset();
}

int OpenDirectories::list(NodeId node, const OpenDirectory& directory, std::uint64_t cookie, std::size_t room,
                          std::vector<ListedEntry>& listed) {
  const ServedTree::KeptNames kept = tree_.keep_names();
  const Hosts::File& file = directory.file();
  std::vector<Host::Entry> entries;
  const std::vector<NodeId> written = tree_.write_behind().kept();
  const OwnChanges::Look look(tree_.own_changes());
  // Without statuses: for them the server would enter the mount point, and wait for itself.
  const int error = tree_.has_hidden(node) ? file.use()->list(file.handle(), cookie, entries)
                                           : file.use()->list_with_status(file.handle(), cookie, room, entries);
  if (error != 0) return error;
  tree_.nodes().note_list(node);
  const Nodes::Clock::duration kept_for = look.is_undisturbed() ? kKept : Nodes::Clock::duration{};
  for (Host::Entry& entry : entries) {
    ListedEntry& one = listed.emplace_back();
    if (entry.status) {
      if (!written.empty()) tree_.count_kept(written, *entry.status);
      one.known = tree_.refer(node, entry.name, *entry.status);
      // For an open file, reads ask for the size.
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
