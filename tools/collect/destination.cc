// SPDX-License-Identifier: Apache-2.0
#include "collect/destination.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <wherry/error.hpp>

#include "layout/ship_wire.hpp"

namespace wherry::tools {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Takes the first component off `path`.
std::string next_component(std::string_view& path) {
  const std::size_t slash = path.find('/');
  std::string first(path.substr(0, slash));
  path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  return first;
}

// The kernel says "not a directory" for a symbolic link as well; who reads the refusal wants to know which.
[[noreturn]] void refuse_component(int parent, const std::string& name, int error) {
  struct stat found{};
  if (::fstatat(parent, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISLNK(found.st_mode)) {
      throw Refusal(ELOOP,
                    fmt::format("leads through the symbolic link '{}' in the destination; remove it there", name));
    }
    if (!S_ISDIR(found.st_mode)) {
      throw Refusal(ENOTDIR,
                    fmt::format("'{}' exists in the destination and is not a directory; remove it there", name));
    }
  }
  throw Refusal(error, fmt::format("directory '{}': {}", name, std::system_category().message(error)));
}

UniqueFd enter_component(int parent, const std::string& name) {
  UniqueFd directory(::openat(parent, name.c_str(), kOpenDirectory));
  if (directory.valid()) return directory;
  if (errno == ENOENT && (::mkdirat(parent, name.c_str(), 0777) == 0 || errno == EEXIST)) {
    directory.reset(::openat(parent, name.c_str(), kOpenDirectory));
  }
  if (!directory.valid()) refuse_component(parent, name, errno);
  return directory;
}

// Staging names are PID-NUMBER.
bool owner_is_dead(const char* name) {
  pid_t owner = 0;
  const auto [end, error] = std::from_chars(name, name + std::strlen(name), owner);
  return error == std::errc() && *end == '-' && ::kill(owner, 0) != 0 && errno == ESRCH;
}

}  // namespace

Destination::Destination(std::string path) : path_(std::move(path)) {
  if (::mkdir(path_.c_str(), 0777) != 0 && errno != EEXIST) {
    throw Error(errno, "make directory", path_, "make its parent directory, or choose another --into");
  }
  root_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root_.valid()) throw Error(errno, "open directory", path_, "choose another --into");
  // An unnamed file gets its name through /proc.
  if (::access("/proc/self/fd", X_OK) != 0) no_unnamed_files();
  remove_stale();
}

Destination::~Destination() {
  staging_.reset();
  // Fails, rightly, while another collector's files wait in it.
  ::unlinkat(root_.get(), std::string(kStaging).c_str(), AT_REMOVEDIR);
}

UniqueFd Destination::open_existing(std::string_view path) const {
  UniqueFd directory;
  int parent = root_.get();
  while (!path.empty()) {
    UniqueFd next(::openat(parent, next_component(path).c_str(), kOpenDirectory));
    if (!next.valid()) return next;
    directory = std::move(next);
    parent = directory.get();
  }
  return directory;
}

int Destination::staging() {
  const std::lock_guard lock(staging_mutex_);
  if (!staging_.valid()) {
    const std::string name(kStaging);
    if (::mkdirat(root_.get(), name.c_str(), 0700) != 0 && errno != EEXIST) throw Refusal(errno);
    staging_.reset(::openat(root_.get(), name.c_str(), kOpenDirectory));
    if (!staging_.valid()) refuse_component(root_.get(), name, errno);
  }
  return staging_.get();
}

std::string Destination::staging_name() {
  return fmt::format("{}-{}", ::getpid(), names_.fetch_add(1, std::memory_order_relaxed));
}

void Destination::remove_stale() {
  const int directory = ::openat(root_.get(), std::string(kStaging).c_str(), kOpenDirectory);
  if (directory < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(directory), ::closedir);
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (owner_is_dead(entry->d_name)) ::unlinkat(directory, entry->d_name, 0);
  }
}

void check_path(std::string_view path) {
  if (path.empty()) throw Refusal(EINVAL, "the path is empty");
  if (path.size() > layout::kShipMaxPath) throw Refusal(ENAMETOOLONG);
  if (path.find('\0') != std::string_view::npos) throw Refusal(EINVAL, "the path has a zero byte in it");
  if (path.front() == '/') throw Refusal(EINVAL, "an absolute path would leave the destination; ship it with -C /");
  if (path.back() == '/') throw Refusal(EINVAL, "the path ends in a slash");
  const std::string_view first = path.substr(0, path.find('/'));
  if (first == Destination::kStaging) throw Refusal(EINVAL, "this name is the collector's own");
  while (!path.empty()) {
    const std::string component = next_component(path);
    if (component == "..")
      throw Refusal(EINVAL, "a path with '..' would leave the destination; ship it from its parent");
    if (component.empty() || component == ".") throw Refusal(EINVAL, "the path has an empty or '.' component");
  }
}

int Walker::enter(std::string_view path) {
  if (path.empty()) return destination_.descriptor();
  if (path == path_) return directory_.get();
  std::string_view rest = path;
  UniqueFd directory;
  int parent = destination_.descriptor();
  if (!path_.empty() && path.starts_with(path_) && path[path_.size()] == '/') {
    rest = path.substr(path_.size() + 1);
    parent = directory_.get();
  }
  while (!rest.empty()) {
    directory = enter_component(parent, next_component(rest));
    parent = directory.get();
  }
  directory_ = std::move(directory);
  path_ = path;
  destination_.directories().touch(path_, directory_.get());
  return directory_.get();
}

Walker::Place Walker::parent_of(std::string_view path) {
  check_path(path);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {destination_.descriptor(), std::string(path)};
  return {enter(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

}  // namespace wherry::tools
