// SPDX-License-Identifier: Apache-2.0
#include "file/mount/file_names.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace wherry::file::mount {
namespace {

/// Identifies a file across daemons; an inode number alone could be reused. Never 0.
std::uint64_t fingerprint_of(const Identity& file) {
  std::uint64_t made = 1;
  for (const std::uint64_t part :
       {file.device, file.inode, static_cast<std::uint64_t>(file.born_seconds), std::uint64_t{file.born_nanoseconds}}) {
    made = (made ^ part) * 0x9E3779B97F4A7C15U;
    made ^= made >> 32;
  }
  return std::max<std::uint64_t>(made, 1);
}

}  // namespace

int FileNames::look_up(NodeId parent, std::string_view name, Entry& entry) {
  const ServedTree::KeptNames kept = tree_.keep_names();
  return look_up_kept(parent, name, entry);
}

int FileNames::look_up_kept(NodeId parent, std::string_view name, Entry& entry) {
  if (tree_.is_hidden(parent, name)) return ELOOP;
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  layout::FileStatus status{};
  const OwnChanges::Look look(tree_.own_changes());
  const int error = tree_.status_of(*path, status);
  if (error == ENOENT) tree_.nodes().remove_name(parent, name);
  if (error != 0) return error;
  entry = tree_.refer(parent, name, status);
  if (!look.is_undisturbed()) return 0;
  entry.name_kept_for = tree_.kept_for(entry.node, status.mode);
  // The call that looks the name up asks for the attributes next. For open files the server is asked each time.
  const bool is_used = tree_.nodes().is_open(entry.node);
  entry.attributes_kept_for =
      is_used ? entry.name_kept_for : std::max<Nodes::Clock::duration>(entry.name_kept_for, kOfOneCall);
  return 0;
}

int FileNames::read_link(NodeId node, std::string& target) {
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(node);
  const int error = path ? tree_.hosts().any()->names().read_link(*path, target) : ESTALE;
  return error == EINVAL ? ESTALE : ServedTree::stale_if_gone(error);  // EINVAL: another type of file has the name now
}

int FileNames::make_file(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  if (!S_ISREG(mode)) return make_node_kept(parent, name, mode, entry);
  const auto first = tree_.attempts().begin(Attempts::now());
  std::unique_ptr<Hosts::File> file;
  const std::uint32_t flags = layout::kFileOpenWrite | layout::kFileOpenCreate | layout::kFileOpenExclusive;
  const Host::Opened opened = tree_.hosts().open(*path, flags, mode & 07777U, file);
  if (opened.error == 0) entry = tree_.refer(parent, name, opened.status);
  if (opened.error == 0) return 0;
  const int error = tree_.made_before(first, opened.error, *path);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

/// Makes a FIFO or socket. The card's kernel implements it; the host has only its name, owner and mode.
int FileNames::make_node_kept(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry) {
  if (!S_ISFIFO(mode) && !S_ISSOCK(mode)) return EPERM;
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  const auto type = S_ISFIFO(mode) ? layout::FileNode::fifo : layout::FileNode::socket;
  const auto first = tree_.attempts().begin(Attempts::now());
  const int error = tree_.made_before(first, tree_.hosts().any()->names().make_node(*path, type, mode & 07777U), *path);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileNames::make_directory(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  const auto first = tree_.attempts().begin(Attempts::now());
  const int error = tree_.made_before(first, tree_.hosts().any()->names().make_directory(*path, mode & 07777U), *path);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileNames::symlink(NodeId parent, std::string_view name, std::string_view target, Entry& entry) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  int error = tree_.hosts().any()->names().symlink(*path, target);
  std::string found;
  if (error == EEXIST && served_request().repeated && tree_.hosts().any()->names().read_link(*path, found) == 0 &&
      found == target)
    error = 0;
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileNames::link(NodeId node, NodeId parent, std::string_view name, Entry& entry) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto to = tree_.nodes().path(parent, name);
  if (!to) return ENOENT;
  std::string from;
  layout::FileStatus status{};
  if (const int error = tree_.find(node, from, status); error != 0) return error;
  int error = tree_.hosts().any()->names().link(from, *to);
  layout::FileStatus there{};
  if (error == EEXIST && served_request().repeated && tree_.hosts().any()->names().status(*to, false, there) == 0 &&
      identity_of(there) == identity_of(status))
    error = 0;
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileNames::remove(NodeId parent, std::string_view name, bool directory) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  tree_.keep_open(parent, name);
  const auto known = tree_.nodes().identity(parent, name);
  const auto first = tree_.attempts().begin(known ? fingerprint_of(*known) : 0);
  const bool was_done = served_request().repeated && was_removed(parent, name, *path, first.value_or(0));
  const int error = was_done ? 0 : tree_.hosts().any()->names().remove(*path, directory);
  if (error == 0 || error == ENOENT) tree_.nodes().remove_name(parent, name);
  return error;
}

/// For a repeated request: whether the first attempt has removed the file that is known by that name.
/// @param removed  fingerprint of the file that the first attempt was to remove; 0: unknown
bool FileNames::was_removed(NodeId parent, std::string_view name, const std::string& path, std::uint64_t removed) {
  layout::FileStatus status{};
  const int error = tree_.hosts().any()->names().status(path, false, status);
  if (error == 0 && removed != 0 && fingerprint_of(identity_of(status)) != removed) return true;
  const auto known = tree_.nodes().identity(parent, name);
  return error == ENOENT || (error == 0 && known && *known != identity_of(status));
}

int FileNames::rename(NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name,
                      unsigned flags) {
  if ((flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0) return EINVAL;
  const auto changed = tree_.change_names();
  const OwnChanges::Change under_way(tree_.own_changes());
  const auto from = tree_.nodes().path(parent, name);
  const auto to = tree_.nodes().path(new_parent, new_name);
  if (!from || !to) return ENOENT;
  static_assert(layout::kFileRenameNoReplace == RENAME_NOREPLACE && layout::kFileRenameExchange == RENAME_EXCHANGE);
  if ((flags & RENAME_EXCHANGE) == 0) tree_.keep_open(new_parent, new_name);
  // If this daemon is killed, the next one finds files by the names that they had.
  tree_.write_behind().settle_all();
  const auto known = tree_.nodes().identity(parent, name);
  const auto first =
      tree_.attempts().begin_rename(known ? known->inode : 0, {.flags = flags, .from = *from, .to = *to});
  const bool was_done = first && was_renamed(*from, *to, *first);
  const int error = was_done ? 0 : tree_.hosts().rename(*from, *to, flags);
  // Whether the first attempt has already recorded the rename.
  const bool is_noted = first && (!known || known->inode != *first);
  if (was_done) tree_.hosts().settle_rename(*from, *to, flags, !is_noted);
  if (error == 0 && !is_noted) tree_.nodes().rename(parent, name, new_parent, new_name, (flags & RENAME_EXCHANGE) != 0);
  if (error == 0) tree_.write_behind().rename();
  return error;
}

/// For a repeated request: whether the first attempt has made the rename.
/// @param moved  inode number of the file to be renamed
bool FileNames::was_renamed(const std::string& from, const std::string& to, std::uint64_t moved) {
  layout::FileStatus there{};
  layout::FileStatus here{};
  const bool is_here = tree_.hosts().any()->names().status(from, false, here) == 0 && here.inode == moved;
  const bool is_there = tree_.hosts().any()->names().status(to, false, there) == 0 && there.inode == moved;
  return is_there && !is_here;
}

}  // namespace wherry::file::mount
