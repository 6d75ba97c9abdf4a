// SPDX-License-Identifier: Apache-2.0
#include "collect/destination.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <wherry/error.hpp>

#include "collect/permissions.hpp"

namespace wherry::tools {
namespace {

constexpr int kOpenRoot = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr std::size_t kOpenDirectories = 1024;
constexpr std::size_t kPendingFiles = 16384;

// EINVAL: the file system does not support fsync; it is ignored, as dd does.
int flush(int directory) { return directory < 0 || (::fsync(directory) != 0 && errno != EINVAL) ? errno : 0; }

UniqueFd open_root(const std::string& path, bool durable) {
  const bool made = ::mkdir(path.c_str(), 0777) == 0;
  if (!made && errno != EEXIST) {
    throw Error(errno, "make directory", path, "make its parent directory, or choose another --into");
  }
  UniqueFd root(::open(path.c_str(), kOpenRoot));
  if (!root.valid()) throw Error(errno, "open directory", path, "choose another --into");
  if (!made || !durable) return root;
  // A parent directory that may be written but not read cannot be flushed.
  const UniqueFd parent(::openat(root.get(), "..", kOpenRoot));
  if (const int error = parent.valid() ? flush(parent.get()) : 0; error != 0) {
    throw Error(error, "flush the directory above", path, "choose another --into, or make it beforehand");
  }
  return root;
}

// Most descriptors are used for the shippers.
std::size_t share_of_descriptors(std::size_t most) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, most);
}

}  // namespace

Destination::Destination(std::string path, bool durable)
    : path_(std::move(path)),
      durable_(durable),
      // Each pending file may also keep its directory open.
      most_pending_files_(static_cast<std::int64_t>(share_of_descriptors(2 * kPendingFiles) / 2)),
      open_(open_root(path_, durable), share_of_descriptors(kOpenDirectories)) {}

std::vector<Failure> Destination::shipper_left() {
  const auto open = [this](std::string_view path) {
    // A directory that is opened from now on must be touched again, so no cached one may stay open.
    open_.forget();
    return open_.open_existing(path);
  };
  const auto settled = [this](int directory) { return durable_ && must_flush_each(directory) ? flush(directory) : 0; };
  return directories_.leave(open, settled);
}

OpenDirectories::Directory Destination::make_directory(std::string_view path, std::uint32_t mode, timespec mtime) {
  // Created with its own mode at once, so that private content is never accessible to others. But this process must be
  // able to store in it.
  const Place where = place(path);
  if (::mkdirat(where.directory->get(), where.name.c_str(), (mode & kPermissions) | S_IRWXU) != 0 && errno != EEXIST) {
    throw Refusal(errno);
  }
  enter(path);
  directories_.announce(path, mode, mtime);
  return where.directory;
}

Place Destination::place(std::string_view path) {
  check_path(path);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {open_.root(), std::string(path)};
  return {enter(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

int Destination::flush_directory(std::string_view path) const { return flush(open_.open_existing(path).get()); }

OpenDirectories::Directory Destination::enter(std::string_view path) {
  return open_.enter(path, [this](std::string_view opened, int fd) { directories_.touch(opened, fd); });
}

}  // namespace wherry::tools
