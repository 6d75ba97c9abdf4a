// SPDX-License-Identifier: Apache-2.0
// Attributes and names.
#include "file/mount/file_system.hpp"

#include <fcntl.h>
#include <linux/fs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <wherry/error.hpp>

#include "file/mount/attributes.hpp"
#include "file/wire/boot_id.hpp"

namespace wherry::file::mount {
namespace {

layout::FileStatus root_of(Hosts& hosts, const std::string& address) {
  layout::FileStatus status{};
  const int error = hosts.any()->status(".", false, status);
  if (error != 0) throw Error(error, "mount", address, "see what wherry serve says");
  return status;
}

}  // namespace

FileSystem::FileSystem(const HostOptions& options, std::size_t connections)
    : hosts_(options, connections),
      root_(root_of(hosts_, options.address)),
      nodes_(identity_of(root_)),
      delegations_(options) {}

Entry FileSystem::refer(NodeId parent, std::string_view name, const layout::FileStatus& status) {
  return {.node = nodes_.refer(parent, name, identity_of(status)), .attributes = stat_of(status, root_.device)};
}

FileSystem::Names FileSystem::keep_names() {
  const std::lock_guard turn(rename_turn_);
  return Names(names_);
}

int FileSystem::look_up(NodeId parent, std::string_view name, Entry& entry) {
  const Names kept = keep_names();
  return look_up_kept(parent, name, entry);
}

void FileSystem::hide(const std::string& mount_point) {
  const std::size_t slash = mount_point.rfind('/');
  const BootId boot = hosts_.any()->boot();
  struct stat folder{};
  if (slash == std::string::npos || boot == BootId{} || boot != own_boot_id()) return;
  if (::stat(mount_point.substr(0, slash + 1).c_str(), &folder) != 0) return;
  hidden_ = {.device = folder.st_dev, .inode = folder.st_ino, .name = mount_point.substr(slash + 1)};
}

bool FileSystem::is_hidden(NodeId parent, std::string_view name) const {
  return hidden_ && name == hidden_->name && has_hidden(parent);
}

bool FileSystem::has_hidden(NodeId directory) const {
  if (!hidden_) return false;
  const auto folder = nodes_.identity(directory);
  return folder && folder->device == hidden_->device && folder->inode == hidden_->inode;
}

int FileSystem::look_up_kept(NodeId parent, std::string_view name, Entry& entry) {
  if (is_hidden(parent, name)) return ELOOP;
  const auto path = nodes_.path(parent, name);
  if (!path) return ENOENT;
  layout::FileStatus status{};
  const OwnChanges::Look look(own_changes_);
  const int error = hosts_.any()->status(*path, false, status);
  if (error == ENOENT) nodes_.remove_name(parent, name);
  if (error == 0) entry = refer(parent, name, status);
  if (error == 0 && look.is_undisturbed()) entry.kept_for = nodes_.kept_for(entry.node);
  return error;
}

template <class Call>
int FileSystem::by_handle(NodeId node, Call call) {
  for (const auto& open : nodes_.open_files(node)) {
    const int error = call(*open);
    if (error != ESTALE && error != EBADF) return error;
  }
  return ESTALE;
}

int FileSystem::status(NodeId node, layout::FileStatus& status) {
  std::chrono::milliseconds delegated_for{};
  return this->status(node, status, delegated_for);
}

int FileSystem::status(NodeId node, layout::FileStatus& status, std::chrono::milliseconds& delegated_for) {
  const Identity identity = nodes_.identity(node).value_or(Identity());
  const int by =
      by_handle(node, [&](OpenFile& open) { return delegations_.look(node, identity, open, status, delegated_for); });
  if (by != ESTALE) return by;
  // The name of the root never changes. A server that comes upon this mount asks for it during another call.
  const Names kept = node == kRootNode ? Names() : keep_names();
  std::string path;
  return find(node, path, status);
}

int FileSystem::stale_if_gone(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP ? ESTALE : error;
}

int FileSystem::find(NodeId node, std::string& path, layout::FileStatus& status) {
  const auto known = nodes_.path(node);
  const auto identity = nodes_.identity(node);
  if (!known || !identity) return ESTALE;
  path = *known;
  if (const int error = hosts_.any()->status(path, false, status); error != 0) return stale_if_gone(error);
  return node == kRootNode || identity_of(status) == *identity ? 0 : ESTALE;
}

template <class Call>
int FileSystem::by_name(NodeId node, Call call) {
  const Names kept = keep_names();
  std::string path;
  layout::FileStatus status{};
  if (const int error = find(node, path, status); error != 0) return error;
  return stale_if_gone(call(path));
}

int FileSystem::attributes(NodeId node, struct stat& attributes) {
  layout::FileStatus found{};
  const int error = status(node, found);
  if (error == 0) attributes = stat_of(found, root_.device);
  return error;
}

int FileSystem::attributes(NodeId node, struct stat& attributes, Nodes::Clock::duration& kept_for) {
  const OwnChanges::Look look(own_changes_);
  const auto asked = Nodes::Clock::now();
  layout::FileStatus found{};
  std::chrono::milliseconds delegated_for{};
  kept_for = {};
  if (const int error = status(node, found, delegated_for); error != 0) return error;
  attributes = stat_of(found, root_.device);
  const Nodes::Clock::duration left = delegated_for - (Nodes::Clock::now() - asked);
  if (look.is_undisturbed()) kept_for = std::max(nodes_.kept_for(node), left);
  return 0;
}

int FileSystem::change(NodeId node, const Changes& changes, const OpenFile* by, struct stat& attributes) {
  int error = 0;
  if (changes.user || changes.group) error = change_owner(node, changes);
  if (error == 0 && changes.mode) error = change_mode(node, *changes.mode);
  if (error == 0 && changes.size) error = change_size(node, *changes.size, by);
  if (error == 0 && changes.times) error = change_times(node, *changes.times);
  return error != 0 ? error : this->attributes(node, attributes);
}

int FileSystem::change_mode(NodeId node, std::uint32_t mode) {
  const auto identity = nodes_.identity(node);
  // The server would change what it leads to.
  if (identity && S_ISLNK(identity->type)) return EOPNOTSUPP;
  const int by =
      by_handle(node, [&](const OpenFile& open) { return open.file().use()->set_mode(open.file().handle(), mode); });
  if (by != ESTALE) return by;
  return by_name(node, [&](const std::string& path) { return hosts_.any()->set_mode(path, mode); });
}

int FileSystem::change_owner(NodeId node, const Changes& changes) {
  const std::uint32_t user = changes.user.value_or(layout::kFileOwnerKept);
  const std::uint32_t group = changes.group.value_or(layout::kFileOwnerKept);
  const int by = by_handle(
      node, [&](const OpenFile& open) { return open.file().use()->set_owner(open.file().handle(), user, group); });
  if (by != ESTALE) return by;
  return by_name(node, [&](const std::string& path) { return hosts_.any()->set_owner(path, false, user, group); });
}

int FileSystem::change_times(NodeId node, const layout::FileTimes& times) {
  const int by =
      by_handle(node, [&](const OpenFile& open) { return open.file().use()->set_times(open.file().handle(), times); });
  if (by != ESTALE) return by;
  return by_name(node, [&](const std::string& path) { return hosts_.any()->set_times(path, false, times); });
}

int FileSystem::change_size(NodeId node, std::uint64_t size, const OpenFile* by) {
  const auto set = [&](const OpenFile& open) {
    return open.writes() ? open.file().use()->set_size(open.file().handle(), size) : ESTALE;
  };
  if (by != nullptr && by->writes()) return set(*by);
  if (const int error = by_handle(node, set); error != ESTALE) return error;
  return by_name(node, [&](const std::string& path) { return hosts_.any()->set_size(path, size); });
}

int FileSystem::read_link(NodeId node, std::string& target) {
  const Names kept = keep_names();
  const auto path = nodes_.path(node);
  const int error = path ? hosts_.any()->read_link(*path, target) : ESTALE;
  return error == EINVAL ? ESTALE : stale_if_gone(error);  // EINVAL: another kind of file has the name now
}

template <class Call>
int FileSystem::by_either(NodeId node, Call call) {
  const int by =
      by_handle(node, [&](const OpenFile& open) { return call(open.file().use(), {.handle = open.file().handle()}); });
  if (by != ESTALE) return by;
  return by_name(node, [&](const std::string& path) { return call(hosts_.any(), {.handle = 0, .name = path}); });
}

int FileSystem::get_xattr(NodeId node, std::string_view attribute, std::vector<std::byte>& value) {
  return by_either(node, [&](const Hosts::Use& host, const Host::Target& target) {
    return host->get_xattr(target, attribute, value);
  });
}

int FileSystem::list_xattrs(NodeId node, std::vector<std::byte>& names) {
  return by_either(
      node, [&](const Hosts::Use& host, const Host::Target& target) { return host->list_xattrs(target, names); });
}

int FileSystem::set_xattr(NodeId node, std::string_view attribute, std::span<const std::byte> value,
                          std::uint32_t flags) {
  const OwnChanges::Change under_way(own_changes_);
  return by_either(node, [&](const Hosts::Use& host, const Host::Target& target) {
    return host->set_xattr(target, attribute, value, flags);
  });
}

int FileSystem::remove_xattr(NodeId node, std::string_view attribute) {
  const OwnChanges::Change under_way(own_changes_);
  return by_either(
      node, [&](const Hosts::Use& host, const Host::Target& target) { return host->remove_xattr(target, attribute); });
}

int FileSystem::file_system(NodeId node, struct statvfs& status) {
  const Names kept = keep_names();
  layout::FileSystemStatus found{};
  const auto path = nodes_.path(node);
  const int error = hosts_.any()->file_system(path ? *path : ".", found);
  if (error == 0) status = statvfs_of(found);
  return error;
}

int FileSystem::make_file(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry) {
  const OwnChanges::Change under_way(own_changes_);
  const Names kept = keep_names();
  const auto path = nodes_.path(parent, name);
  if (!path) return ENOENT;
  if (!S_ISREG(mode)) return make_node_kept(parent, name, mode, entry);
  std::unique_ptr<Hosts::File> file;
  const std::uint32_t flags = layout::kFileOpenWrite | layout::kFileOpenCreate | layout::kFileOpenExclusive;
  const Host::Opened opened = hosts_.open(*path, flags, mode & 07777U, file);
  if (opened.error == 0) entry = refer(parent, name, opened.status);
  return opened.error;
}

/// The kernel of the card serves what is opened: the host has the name, the owner and the mode.
int FileSystem::make_node_kept(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry) {
  if (!S_ISFIFO(mode) && !S_ISSOCK(mode)) return EPERM;
  const auto path = nodes_.path(parent, name);
  if (!path) return ENOENT;
  const auto type = S_ISFIFO(mode) ? layout::FileNode::fifo : layout::FileNode::socket;
  const int error = hosts_.any()->make_node(*path, type, mode & 07777U);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileSystem::make_directory(NodeId parent, std::string_view name, std::uint32_t mode, Entry& entry) {
  const OwnChanges::Change under_way(own_changes_);
  const Names kept = keep_names();
  const auto path = nodes_.path(parent, name);
  if (!path) return ENOENT;
  const int error = hosts_.any()->make_directory(*path, mode & 07777U);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileSystem::symlink(NodeId parent, std::string_view name, std::string_view target, Entry& entry) {
  const OwnChanges::Change under_way(own_changes_);
  const Names kept = keep_names();
  const auto path = nodes_.path(parent, name);
  if (!path) return ENOENT;
  const int error = hosts_.any()->symlink(*path, target);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileSystem::link(NodeId node, NodeId parent, std::string_view name, Entry& entry) {
  const OwnChanges::Change under_way(own_changes_);
  const Names kept = keep_names();
  const auto to = nodes_.path(parent, name);
  if (!to) return ENOENT;
  std::string from;
  layout::FileStatus status{};
  if (const int error = find(node, from, status); error != 0) return error;
  const int error = hosts_.any()->link(from, *to);
  return error != 0 ? error : look_up_kept(parent, name, entry);
}

int FileSystem::remove(NodeId parent, std::string_view name, bool directory) {
  const OwnChanges::Change under_way(own_changes_);
  const Names kept = keep_names();
  const auto path = nodes_.path(parent, name);
  if (!path) return ENOENT;
  const int error = hosts_.any()->remove(*path, directory);
  if (error == 0 || error == ENOENT) nodes_.remove_name(parent, name);
  return error;
}

int FileSystem::rename(NodeId parent, std::string_view name, NodeId new_parent, std::string_view new_name,
                       unsigned flags) {
  if ((flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0) return EINVAL;
  std::unique_lock turn(rename_turn_);
  const std::lock_guard changed(names_);
  turn.unlock();
  const OwnChanges::Change under_way(own_changes_);
  const auto from = nodes_.path(parent, name);
  const auto to = nodes_.path(new_parent, new_name);
  if (!from || !to) return ENOENT;
  static_assert(layout::kFileRenameNoReplace == RENAME_NOREPLACE && layout::kFileRenameExchange == RENAME_EXCHANGE);
  const int error = hosts_.rename(*from, *to, flags);
  if (error == 0) nodes_.rename(parent, name, new_parent, new_name, (flags & RENAME_EXCHANGE) != 0);
  return error;
}

}  // namespace wherry::file::mount
