// SPDX-License-Identifier: Apache-2.0
#include "file/mount/file_attributes.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "file/mount/attributes.hpp"

namespace wherry::file::mount {
namespace {

/// A program that reads a file in place asks for its attributes every 10 ms. The kernel forgets them this much before
/// the delegation ends, so that such a request renews it in time.
constexpr std::chrono::milliseconds kRenewedBefore{30};

/// The open files of a node that programs read in place.
class ReadInPlace {
 public:
  /// To be made before the server is asked for a delegation.
  explicit ReadInPlace(std::vector<std::shared_ptr<OpenFile>> open) {
    for (auto& file : open) {
      if (const auto recalls = file->delegation_pages().recalls()) files_.emplace_back(std::move(file), *recalls);
    }
  }
  [[nodiscard]] bool any() const { return !files_.empty(); }
  void grant(Nodes::Clock::time_point until) const {
    for (const auto& [file, recalls] : files_) file->delegation_pages().grant(recalls, until);
  }

 private:
  std::vector<std::pair<std::shared_ptr<OpenFile>, std::uint64_t>> files_;
};

}  // namespace

template <class Look>
int FileAttributes::status(NodeId node, layout::FileStatus& status, Look look) {
  tree_.write_behind().settle(node);
  if (const int by = tree_.by_handle(node, look); by != ESTALE) return by;
  // The root's name never changes. A server that enters this mount asks for the root during another call.
  const ServedTree::KeptNames kept = node == kRootNode ? ServedTree::KeptNames() : tree_.keep_names();
  std::string path;
  return tree_.find(node, path, status);
}

int FileAttributes::get(NodeId node, struct stat& attributes) {
  layout::FileStatus found{};
  const int error =
      status(node, found, [&](OpenFile& open) { return open.file().use()->status(open.file().handle(), found); });
  if (error == 0) attributes = tree_.attributes_of(found);
  return error;
}

int FileAttributes::get(NodeId node, struct stat& attributes, Nodes::Clock::duration& kept_for) {
  const OwnChanges::Look look(tree_.own_changes());
  const ReadInPlace in_place(tree_.nodes().open_files(node));
  const auto asked = Nodes::Clock::now();
  layout::FileStatus found{};
  std::chrono::milliseconds delegated_for{};
  kept_for = {};
  const Identity identity = tree_.nodes().identity(node).value_or(Identity());
  const auto by = [&](OpenFile& open) { return delegations_.look(node, identity, open, found, delegated_for); };
  if (const int error = status(node, found, by); error != 0) return error;
  attributes = tree_.attributes_of(found);
  if (delegated_for.count() != 0) in_place.grant(asked + delegated_for);
  if (in_place.any() && delegated_for > kRenewedBefore) delegated_for -= kRenewedBefore;
  const Nodes::Clock::duration left = delegated_for - (Nodes::Clock::now() - asked);
  if (look.is_undisturbed()) kept_for = std::max(tree_.kept_for(node, found.mode), left);
  return 0;
}

int FileAttributes::change(NodeId node, const Changes& changes, const OpenFile* by, struct stat& attributes) {
  tree_.write_behind().give_back(node);
  int error = 0;
  if (changes.user || changes.group) error = set_owner(node, changes);
  if (error == 0 && changes.mode) error = set_mode(node, *changes.mode);
  if (error == 0 && changes.size) error = set_size(node, *changes.size, by);
  if (error == 0 && changes.times) error = set_times(node, *changes.times);
  return error != 0 ? error : get(node, attributes);
}

int FileAttributes::set_mode(NodeId node, std::uint32_t mode) {
  const auto identity = tree_.nodes().identity(node);
  // The server would change the target of the link.
  if (identity && S_ISLNK(identity->type)) return EOPNOTSUPP;
  return tree_.by_handle_or_name(
      node, [&](const OpenFile& open) { return open.file().use()->set_mode(open.file().handle(), mode); },
      [&](const std::string& path) { return tree_.hosts().any()->names().set_mode(path, mode); });
}

int FileAttributes::set_owner(NodeId node, const Changes& changes) {
  const std::uint32_t user = changes.user.value_or(layout::kFileOwnerKept);
  const std::uint32_t group = changes.group.value_or(layout::kFileOwnerKept);
  return tree_.by_handle_or_name(
      node, [&](const OpenFile& open) { return open.file().use()->set_owner(open.file().handle(), user, group); },
      [&](const std::string& path) { return tree_.hosts().any()->names().set_owner(path, false, user, group); });
}

int FileAttributes::set_times(NodeId node, const layout::FileTimes& times) {
  return tree_.by_handle_or_name(
      node, [&](const OpenFile& open) { return open.file().use()->set_times(open.file().handle(), times); },
      [&](const std::string& path) { return tree_.hosts().any()->names().set_times(path, false, times); });
}

int FileAttributes::set_size(NodeId node, std::uint64_t size, const OpenFile* by) {
  tree_.write_behind().give_back(node);
  const auto set = [&](const OpenFile& open) {
    return open.writes() ? open.file().use()->set_size(open.file().handle(), size) : ESTALE;
  };
  if (by != nullptr && by->writes()) return set(*by);
  return tree_.by_handle_or_name(
      node, set, [&](const std::string& path) { return tree_.hosts().any()->names().set_size(path, size); });
}

int FileAttributes::drop_set_id(NodeId node, const std::function<bool(gid_t)>& is_in_group) {
  struct stat file{};
  if (const int error = get(node, file); error != 0) return error;
  std::uint32_t dropped = file.st_mode & S_ISUID;
  const bool by_group = (file.st_mode & S_ISGID) != 0;
  if (by_group && ((file.st_mode & S_IXGRP) != 0 || !is_in_group(file.st_gid))) dropped |= S_ISGID;
  const int error = dropped == 0 ? 0 : set_mode(node, file.st_mode & 07777U & ~dropped);
  // If the server is neither root nor the owner, the host's kernel removes the bits.
  return error == EPERM ? 0 : error;
}

int FileAttributes::get_xattr(NodeId node, std::string_view attribute, std::vector<std::byte>& value) {
  return tree_.by_either(node, [&](const Hosts::Use& host, const HostXattrs::Target& target) {
    return host->xattrs().get(target, attribute, value);
  });
}

int FileAttributes::list_xattrs(NodeId node, std::vector<std::byte>& names) {
  return tree_.by_either(node, [&](const Hosts::Use& host, const HostXattrs::Target& target) {
    return host->xattrs().list(target, names);
  });
}

int FileAttributes::set_xattr(NodeId node, std::string_view attribute, std::span<const std::byte> value,
                              std::uint32_t flags) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const int error = tree_.by_either(node, [&](const Hosts::Use& host, const HostXattrs::Target& target) {
    return host->xattrs().set(target, attribute, value, flags);
  });
  std::vector<std::byte> found;
  const bool was_done = error == EEXIST && served_request().repeated && get_xattr(node, attribute, found) == 0 &&
                        std::ranges::equal(found, value);
  return was_done ? 0 : error;
}

int FileAttributes::remove_xattr(NodeId node, std::string_view attribute) {
  const OwnChanges::Change under_way(tree_.own_changes());
  const int error = tree_.by_either(node, [&](const Hosts::Use& host, const HostXattrs::Target& target) {
    return host->xattrs().remove(target, attribute);
  });
  return error == ENODATA && served_request().repeated ? 0 : error;
}

int FileAttributes::file_system(NodeId node, struct statvfs& status) {
  const ServedTree::KeptNames kept = tree_.keep_names();
  layout::FileSystemStatus found{};
  const auto path = tree_.nodes().path(node);
  const int error = tree_.hosts().any()->names().file_system(path ? *path : ".", found);
  if (error == 0) status = statvfs_of(found);
  return error;
}

}  // namespace wherry::file::mount
