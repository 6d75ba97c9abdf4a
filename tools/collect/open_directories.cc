// SPDX-License-Identifier: Apache-2.0
#include "collect/open_directories.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "ship/layout/wire.hpp"

namespace wherry::tools {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kNameDirectory = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Removes the first component from `path`, and returns it.
std::string next_component(std::string_view& path) {
  const std::size_t slash = path.find('/');
  std::string first(path.substr(0, slash));
  path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  return first;
}

// Opens a directory at any depth with one call, and never through a symbolic link.
UniqueFd open_at_once(int root, const std::string& path) {
  open_how how{};
  how.flags = kOpenDirectory;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
}

// Throws a Refusal. The kernel reports a symbolic link as "not a directory" as well, so this finds out which it is.
[[noreturn]] void refuse_component(int parent, const std::string& name, int error) {
  struct stat found{};
  if (::fstatat(parent, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISLNK(found.st_mode)) {
      throw Refusal(ELOOP,
                    fmt::format("leads through the symbolic link '{}' in the destination; remove it there", name));
    }
    if (!S_ISDIR(found.st_mode)) {
      throw Refusal(ENOTDIR, fmt::format("'{}' exists in the destination and is no directory; remove it there", name));
    }
  }
  throw Refusal(error, fmt::format("directory '{}': {}", name, std::system_category().message(error)));
}

}  // namespace

void check_path(std::string_view path) {
  if (path.empty()) throw Refusal(EINVAL, "the path is empty");
  if (path.size() > layout::kShipMaxPath) throw Refusal(ENAMETOOLONG);
  if (path.find('\0') != std::string_view::npos) throw Refusal(EINVAL, "the path has a zero byte in it");
  if (path.front() == '/') throw Refusal(EINVAL, "an absolute path would leave the destination; ship it with -C /");
  if (path.back() == '/') throw Refusal(EINVAL, "the path ends in a slash");
  while (!path.empty()) {
    const std::string component = next_component(path);
    if (component == "..") {
      throw Refusal(EINVAL, "a path with '..' would leave the destination; ship it from its parent");
    }
    if (component.starts_with(kStagingPrefix)) throw Refusal(EINVAL, "this name is the collector's own");
    if (component.empty() || component == ".") throw Refusal(EINVAL, "the path has an empty or '.' component");
  }
}

OpenDirectories::OpenDirectories(UniqueFd root, std::size_t capacity) : capacity_(capacity) {
  std::shared_ptr<FileSystem> file_system = file_systems_.of(root.get());
  root_ = std::make_shared<const OpenDirectory>(std::move(root), std::move(file_system));
}

UniqueFd OpenDirectories::open_existing(std::string_view path) const {
  UniqueFd directory = open_at_once(root_->get(), path.empty() ? "." : std::string(path));
  if (directory.valid() || errno == ENOENT) return directory;
  // Linux before 5.6 has no openat2, and a sandbox may refuse it.
  directory = UniqueFd(::openat(root_->get(), ".", kOpenDirectory));
  while (directory.valid() && !path.empty()) {
    directory = UniqueFd(::openat(directory.get(), next_component(path).c_str(), kOpenDirectory));
  }
  return directory;
}

void OpenDirectories::forget() {
  const std::lock_guard lock(mutex_);
  index_.clear();
  latest_.clear();
  file_systems_.end_staging();
}

OpenDirectories::Directory OpenDirectories::find(std::string_view path) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(path);
  if (found == index_.end()) return nullptr;
  latest_.splice(latest_.begin(), latest_, found->second);
  return found->second->directory;
}

// Returns the deepest open directory on the way to `path`, and the length of its path.
std::pair<OpenDirectories::Directory, std::size_t> OpenDirectories::find_deepest(std::string_view path) {
  for (std::size_t length = path.size(); length > 0;) {
    if (Directory known = find(path.substr(0, length))) return {std::move(known), length};
    const std::size_t slash = path.rfind('/', length - 1);
    length = slash == std::string_view::npos ? 0 : slash;
  }
  return {root_, 0};
}

void OpenDirectories::keep(std::string_view path, const Directory& directory) {
  const std::lock_guard lock(mutex_);
  if (index_.contains(path)) return;  // another shipper's thread was faster
  latest_.push_front({std::string(path), directory});
  index_.emplace(latest_.front().path, latest_.begin());
  if (latest_.size() <= capacity_) return;
  index_.erase(latest_.back().path);
  latest_.pop_back();
}

UniqueFd OpenDirectories::open_or_make(int parent, const std::string& name) {
  UniqueFd directory(::openat(parent, name.c_str(), kOpenDirectory));
  if (!directory.valid() && errno == ENOENT) {
    if (::mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST) refuse_component(parent, name, errno);
    directory.reset(::openat(parent, name.c_str(), kOpenDirectory));
  }
  if (!directory.valid() && errno == EACCES) directory.reset(::openat(parent, name.c_str(), kNameDirectory));
  if (!directory.valid()) refuse_component(parent, name, errno);
  return directory;
}

OpenDirectories::Directory OpenDirectories::hold(int parent, const std::string& name, UniqueFd named) {
  const bool readable = (::fcntl(named.get(), F_GETFL) & O_PATH) == 0;
  UniqueFd directory = readable ? std::move(named) : UniqueFd(::openat(named.get(), ".", kOpenDirectory));
  if (!directory.valid()) refuse_component(parent, name, errno);
  std::shared_ptr<FileSystem> file_system = file_systems_.of(directory.get());
  return std::make_shared<const OpenDirectory>(std::move(directory), std::move(file_system));
}

}  // namespace wherry::tools
