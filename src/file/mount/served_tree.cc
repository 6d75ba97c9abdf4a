// SPDX-License-Identifier: Apache-2.0
#include "file/mount/served_tree.hpp"

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
  const int error = hosts.any()->names().status(".", false, status);
  if (error != 0) throw Error(error, "mount", address, "see what wherry serve says");
  return status;
}

}  // namespace

ServedTree::ServedTree(const HostOptions& options, std::size_t connections)
    : hosts_(options, connections), root_(root_of(hosts_, options.address)), nodes_(identity_of(root_)) {}

ServedTree::KeptNames ServedTree::keep_names() {
  const std::lock_guard turn(rename_turn_);
  return KeptNames(names_);
}

std::unique_lock<std::shared_mutex> ServedTree::change_names() {
  const std::lock_guard turn(rename_turn_);
  return std::unique_lock(names_);
}

void ServedTree::hide(const std::string& mount_point) {
  const std::size_t slash = mount_point.rfind('/');
  const BootId boot = hosts_.any()->boot();
  struct stat folder{};
  if (slash == std::string::npos || boot == BootId{} || boot != own_boot_id()) return;
  if (::stat(mount_point.substr(0, slash + 1).c_str(), &folder) != 0) return;
  hidden_ = {.device = folder.st_dev, .inode = folder.st_ino, .name = mount_point.substr(slash + 1)};
}

bool ServedTree::is_hidden(NodeId parent, std::string_view name) const {
  return hidden_ && name == hidden_->name && has_hidden(parent);
}

bool ServedTree::has_hidden(NodeId directory) const {
  if (!hidden_) return false;
  const auto folder = nodes_.identity(directory);
  return folder && folder->device == hidden_->device && folder->inode == hidden_->inode;
}

Entry ServedTree::refer(NodeId parent, std::string_view name, const layout::FileStatus& status) {
  return {.node = nodes_.refer(parent, name, identity_of(status)), .attributes = attributes_of(status)};
}

Nodes::Clock::duration ServedTree::kept_for(NodeId node, std::uint32_t mode) const {
  const Nodes::Clock::duration listed = nodes_.kept_for(node);
  return S_ISDIR(mode) ? std::max<Nodes::Clock::duration>(listed, kDirectoriesKept) : listed;
}

struct stat ServedTree::attributes_of(const layout::FileStatus& status) const { return stat_of(status, root_.device); }

std::uint64_t ServedTree::inode_of(std::uint64_t inode, std::uint64_t device) const {
  return mount::inode_of(inode, device, root_.device);
}

int ServedTree::stale_if_gone(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP ? ESTALE : error;
}

int ServedTree::find(NodeId node, std::string& path, layout::FileStatus& status) {
  const auto known = nodes_.path(node);
  const auto identity = nodes_.identity(node);
  if (!known || !identity) return ESTALE;
  path = *known;
  if (const int error = hosts_.any()->names().status(path, false, status); error != 0) return stale_if_gone(error);
  return node == kRootNode || identity_of(status) == *identity ? 0 : ESTALE;
}

/// If the name of a file that is open leads to another one by now, it is forgotten. The kernel looks the name up and
/// tries again; where it has none, since a program opens a descriptor's name in /proc, the next attempt finds no name
/// here.
int ServedTree::open(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file, layout::FileStatus& status) {
  const auto path = nodes_.path(node);
  if (!path) return open_open(node, flags, file, status, nullptr);
  const int error = open_by_name(node, flags, file, status, nullptr);
  if (error == ESTALE && nodes_.is_open(node)) nodes_.remove_path(node, *path);
  return error;
}

int ServedTree::open_again(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file,
                           layout::FileStatus& status, const Hosts::File* beside) {
  const int error = open_by_name(node, flags, file, status, beside);
  return error == ESTALE ? open_open(node, flags, file, status, beside) : error;
}

int ServedTree::open_by_name(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file,
                             layout::FileStatus& status, const Hosts::File* beside) {
  const KeptNames kept = keep_names();
  const auto path = nodes_.path(node);
  const auto identity = nodes_.identity(node);
  if (!path || !identity) return ESTALE;
  const Host::Opened opened = hosts_.open(*path, flags, 0, file, beside);
  // These may be said of another file that has the name.
  if (opened.error == EISDIR || opened.error == EOPNOTSUPP || opened.error == EACCES) {
    std::string same;
    return find(node, same, status) == ESTALE ? ESTALE : opened.error;
  }
  if (opened.error != 0) return stale_if_gone(opened.error);
  status = opened.status;
  return node == kRootNode || identity_of(status) == *identity ? 0 : ESTALE;
}

int ServedTree::open_open(NodeId node, std::uint32_t flags, std::unique_ptr<Hosts::File>& file,
                          layout::FileStatus& status, const Hosts::File* beside) {
  for (const auto& open : nodes_.open_files(node)) {
    if (beside != nullptr && !open->file().is_beside(*beside)) continue;
    const int error = open->file().open_again(flags, file, status);
    if (error != ESTALE && error != EBADF) return error;
  }
  return ESTALE;
}

}  // namespace wherry::file::mount
