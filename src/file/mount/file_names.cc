// SPDX-License-Identifier: Apache-2.0
#include "file/mount/file_names.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace wherry::file::mount {

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
  const int error = tree_.hosts().any()->names().status(*path, false, status);
  if (error == ENOENT) tree_.nodes().remove_name(parent, name);
  if (error != 0) return error;
  entry = tree_.refer(parent, name, status);
  if (!look.is_undisturbed()) return 0;
  entry.name_kept_for = tree_.kept_for(entry.node, status.mode);
  // The call that looks the name up asks for the attributes next. Files that are open are asked for each time.
  const bool is_used = tree_.nodes().is_open(entry.node);
  entry.attributes_kept_for =
      is_used ? entry.name_kept_for : std::max<Nodes::Clock::duration>(entry.name_kept_for, kOfOneCall);
  return 0;
}

int FileNames::read_link(NodeId node, std::string& target) {
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(node);
  const int error = path ? tree_.hosts().any()->names().read_link(*path, target) : ESTALE;
  return error == EINVAL ? ESTALE : ServedTree::stale_if_gone(error);  // EINVAL: another kind of file has the name now
}

int FileNames::make_file(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  if (!S_ISREG(mode)) return make_node_kept(parent, name, mode, entry);
  std::unique_ptr<Hosts::File> file;
  const std::uint32_t flags = layout::kFileOpenWrite | layout::kFileOpenCreate | layout::kFileOpenExclusive;
  const Host::Opened opened = tree_.hosts().open(*path, flags, mode & 07777U, file);
  if (opened.error == 0) entry = tree_.refer(parent, name, opened.status);
  return opened.error;
}

/// The kernel of the card serves what is opened: the host has the name, the owner and the mode.
int FileNames::make_node_kept(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry) {
  if (!S_ISFIFO(mode) && !S_ISSOCK(mode)) return EPERM;
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  const auto type = S_ISFIFO(mode) ? layout::FileNode::fifo : layout::FileNode::socket;
  const int error = tree_.hosts().any()->names().make_node(*path, type, mode & 07777U);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileNames::make_directory(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  const int error = tree_.hosts().any()->names().make_directory(*path, mode & 07777U);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileNames::symlink(NodeId parent, std::string_view name, std::string_view target, Entry& entry) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  const int error = tree_.hosts().any()->names().symlink(*path, target);
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
  const int error = tree_.hosts().any()->names().link(from, *to);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileNames::remove(NodeId parent, std::string_view name, bool directory) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const ServedTree::KeptNames kept = tree_.keep_names();
  const auto path = tree_.nodes().path(parent, name);
  if (!path) return ENOENT;
  const int error = tree_.hosts().any()->names().remove(*path, directory);
  if (error == 0 || error == ENOENT) tree_.nodes().remove_name(parent, name);
  return error;
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
  const int error = tree_.hosts().rename(*from, *to, flags);
  if (error == 0) tree_.nodes().rename(parent, name, new_parent, new_name, (flags & RENAME_EXCHANGE) != 0);
  return error;
}

}  // namespace wherry::file::mount
