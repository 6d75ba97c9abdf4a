// SPDX-License-Identifier: Apache-2.0
#include "collect/destination.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>
#include <wherry/error.hpp>

#include "collect/permissions.hpp"

namespace wherry::tools {
namespace {

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr std::size_t kOpenDirectories = 1024;

UniqueFd open_root(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    throw Error(errno, "make directory", path, "make its parent directory, or choose another --into");
  }
  UniqueFd root(::open(path.c_str(), kOpenDirectory));
  if (!root.valid()) throw Error(errno, "open directory", path, "choose another --into");
  return root;
}

// Most of the descriptors are the shippers'.
std::size_t open_directories() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, kOpenDirectories);
}

// Staging names are PID-NUMBER.
bool owner_is_dead(const char* name) {
  pid_t owner = 0;
  const auto [end, error] = std::from_chars(name, name + std::strlen(name), owner);
  return error == std::errc() && *end == '-' && ::kill(owner, 0) != 0 && errno == ESRCH;
}

}  // namespace

Destination::Destination(std::string path) : path_(std::move(path)), open_(open_root(path_), open_directories()) {
  // An unnamed file gets its name through /proc.
  if (::access("/proc/self/fd", X_OK) != 0) no_unnamed_files();
  remove_stale();
}

Destination::~Destination() {
  staging_.reset();
  // Fails, rightly, while another collector's files wait in it.
  ::unlinkat(open_.root()->get(), std::string(kStagingName).c_str(), AT_REMOVEDIR);
}

std::vector<Failure> Destination::shipper_left() {
  return directories_.leave([this](std::string_view path) {
    // From here on a directory that is opened must be touched again, so none may stay open unnoticed.
    open_.forget();
    return open_.open_existing(path);
  });
}

void Destination::make_directory(std::string_view path, std::uint32_t mode, timespec mtime) {
  // Made with its own mode at once, so that what is private is never open; but this process must be able to store in
  // it.
  const Place where = place(path);
  if (::mkdirat(where.directory->get(), where.name.c_str(), (mode & kPermissions) | S_IRWXU) != 0 && errno != EEXIST) {
    throw Refusal(errno);
  }
  enter(path);
  directories_.announce(path, mode, mtime);
}

Place Destination::place(std::string_view path) {
  check_path(path);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {open_.root(), std::string(path)};
  return {enter(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

int Destination::staging() {
  const std::lock_guard lock(staging_mutex_);
  if (!staging_.valid()) {
    const std::string name(kStagingName);
    const int root = open_.root()->get();
    if (::mkdirat(root, name.c_str(), 0700) != 0 && errno != EEXIST) throw Refusal(errno);
    staging_.reset(::openat(root, name.c_str(), kOpenDirectory | O_NOFOLLOW));
    if (!staging_.valid()) throw Refusal(errno, "the staging directory " + name + " is none; remove it");
  }
  return staging_.get();
}

std::string Destination::staging_name() {
  return fmt::format("{}-{}", ::getpid(), names_.fetch_add(1, std::memory_order_relaxed));
}

OpenDirectories::Directory Destination::enter(std::string_view path) {
  return open_.enter(path, [this](std::string_view opened, int fd) { directories_.touch(opened, fd); });
}

void Destination::remove_stale() {
  const std::string name(kStagingName);
  const int directory = ::openat(open_.root()->get(), name.c_str(), kOpenDirectory | O_NOFOLLOW);
  if (directory < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(directory), ::closedir);
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (owner_is_dead(entry->d_name)) ::unlinkat(directory, entry->d_name, 0);
  }
}

}  // namespace wherry::tools
