// SPDX-License-Identifier: Apache-2.0
#include "file/mount/served_tree.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include <wherry/error.hpp>

#include "base/machine.hpp"
#include "file/mount/attributes.hpp"

namespace wherry::file::mount {
namespace {

layout::FileStatus root_of(Hosts& hosts, const std::string& address) {
  layout::FileStatus status{};
  const int error = hosts.any()->names().status(".", false, status);
  if (error != 0) throw Error(error, "mount", address, "read the log of wherry serve");
  return status;
}

/// Converts a record to the text of KeptState.
template <class Record>
std::string text_of(const Record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

template <class Record>
Record record_of(const std::string& text) {
  Record record{};
  if (text.size() != sizeof record) throw Error(EPROTO, "take over", "a mount", "unmount it, and mount it again");
  std::memcpy(&record, text.data(), sizeof record);
  return record;
}

HostOptions connecting_later(HostOptions options, const KeptSnapshot& left) {
  options.greeted = record_of<layout::FileHello>(left.text(layout::KeptWord::server));
  return options;
}

}  // namespace

void ServedTree::drop(NodeId node, Kept what) const {
  for (const auto& open : nodes_.open_files(node)) open->delegation_pages().recall();
  drop_(node, what);
}

ServedTree::ServedTree(const HostOptions& options, std::size_t connections, UniqueFd writes, const Keeping& keeping)
    : hosts_(keeping.left == nullptr ? options : connecting_later(options, *keeping.left), connections),
      keeping_(keeping),
      root_(keeping.left == nullptr ? root_of(hosts_, options.address)
                                    : record_of<layout::FileStatus>(keeping.left->text(layout::KeptWord::root))),
      nodes_(identity_of(root_), keeping.state),
      write_behind_(nodes_, std::move(writes), keeping.descriptors),
      attempts_(keeping.state) {
  if (const KeptSnapshot* const left = std::exchange(keeping_.left, nullptr); left != nullptr) {
    first_boot_ = boot_id_of(record_of<layout::FileHello>(left->text(layout::KeptWord::server)));
    nodes_.restore(*left);
    attempts_.restore(*left);
    last_number_ = left->number(layout::KeptWord::last_open);
    for (const auto& [request, renaming] : left->renaming)
      hosts_.announce_rename(renaming.from, renaming.to, static_cast<std::uint32_t>(renaming.flags));
    return;
  }
  KeptState::Batch batch(keeping.state);
  const layout::FileHello server = hosts_.any()->server();
  first_boot_ = boot_id_of(server);
  batch.add_text(layout::KeptWord::server, text_of(server));
  batch.add_text(layout::KeptWord::root, text_of(root_));
}

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
  struct stat folder{};
  if (slash == std::string::npos || !is_own_kernel()) return;
  if (::stat(mount_point.substr(0, slash + 1).c_str(), &folder) != 0) return;
  hidden_ = {.device = folder.st_dev, .inode = folder.st_ino, .name = mount_point.substr(slash + 1)};
}

bool ServedTree::is_own_kernel() { return wherry::is_own_kernel(hosts_.any()->boot()); }

int ServedTree::made_before(std::optional<std::uint64_t> first, int error, const std::string& path) {
  if (!first || error != EEXIST) return error;
  layout::FileStatus status{};
  if (const int other = hosts_.any()->names().status(path, false, status); other != 0) return other;
  const auto made = is_own_kernel() ? was_made_since(status, *first) : std::nullopt;
  if (!made) return EIO;
  return *made ? 0 : error;
}

std::unique_ptr<Hosts::File> ServedTree::resume(NodeId node, std::uint64_t number, std::uint32_t flags, bool lost,
                                                const std::optional<HostBoot>& seen) {
  const Identity identity = nodes_.identity(node).value_or(Identity());
  layout::FileStatus same{};
  same.device = identity.device;
  same.inode = identity.inode;
  same.has_birth = identity.born_seconds != 0 || identity.born_nanoseconds != 0 ? 1 : 0;
  same.born = {.seconds = identity.born_seconds, .nanoseconds = identity.born_nanoseconds, .reserved = 0};
  UniqueFd kept = keeping_.descriptors->take({.kind = KeptKind::file, .id = number});
  return hosts_.resume(nodes_.path(node).value_or(""), flags, same, lost, std::move(kept), seen);
}

/// The first boot of the mount, which all daemons know, is not recorded; hosts seldom have another one. A reported loss
/// is recorded once the kernel has the answer, unless the host has rebooted again by then.
void ServedTree::keep_boots(const Hosts::File& file, std::uint64_t number) {
  KeptState* const state = keeping_.state;
  if (state == nullptr) return;
  struct Noted {
    std::mutex mutex{};
    HostBoot seen{};
  };
  const auto noted = std::make_shared<Noted>();
  noted->seen.boot = first_boot_;
  const auto keep = [state, number, noted](const HostBoot& seen) {
    noted->seen = seen;
    KeptState::Batch(state).add_boot(number, seen);
  };
  const auto note = [noted, keep](const HostBoot& seen) {
    const HostBoot lost{.boot = seen.boot, .lost = true};
    {
      const std::lock_guard lock(noted->mutex);
      if (seen == noted->seen) return;
      if (noted->seen != lost) return keep(seen);
    }
    when_answered([noted, keep, seen, lost] {
      const std::lock_guard lock(noted->mutex);
      if (noted->seen == lost) keep(seen);
    });
  };
  file.use()->note_boots(file.handle(), note);
}

void ServedTree::keep_open(NodeId parent, std::string_view name) {
  if (keeping_.descriptors == nullptr) return;
  const auto node = nodes_.find(parent, name);
  if (!node) return;
  for (const auto& open : nodes_.open_files(*node)) {
    if (open->is_kept()) continue;
    const std::shared_ptr<const LentFile> lent = open->file().use()->lend(open->file().handle());
    if (lent == nullptr) continue;
    open->set_kept();
    keeping_.descriptors->keep({.kind = KeptKind::file, .id = open->number()}, lent->descriptor());
  }
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

int ServedTree::status_of(const std::string& path, layout::FileStatus& status) {
  const std::vector<NodeId> kept = write_behind_.kept();
  const int error = hosts_.any()->names().status(path, false, status);
  if (error == 0 && !kept.empty()) count_kept(kept, status);
  return error;
}

/// After this, the status includes all writes that were acknowledged before this call began. Either they are written
/// now, or others have written them since `kept` was made.
void ServedTree::count_kept(const std::vector<NodeId>& kept, layout::FileStatus& status) {
  const Identity identity = identity_of(status);
  for (const NodeId node : kept) {
    if (nodes_.identity(node) != identity) continue;
    write_behind_.settle(node);
    by_handle(node, [&](const OpenFile& open) { return open.file().use()->status(open.file().handle(), status); });
  }
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

/// If the name of an open file now leads to another file, the name is forgotten. The kernel then looks the name up and
/// retries. If a program opens a descriptor's name in /proc, the kernel has no name; then the retry finds no name here.
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
  // These errors may concern another file that has the name now.
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
    if (beside != nullptr && !open->file().shares_connection_with(*beside)) continue;
    const int error = open->file().open_again(flags, file, status);
    if (error != ESTALE && error != EBADF) return error;
  }
  return ESTALE;
}

}  // namespace wherry::file::mount
