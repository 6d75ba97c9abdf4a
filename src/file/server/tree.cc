// SPDX-License-Identifier: Apache-2.0
#include "file/server/tree.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "file/wire/open_again.hpp"

namespace wherry::file {
namespace {

/// openat2 fails with EAGAIN if a rename interferes. A tree that is renamed all the time is not waited for.
constexpr int kMostAttempts = 128;

/// Attempts, if a name is removed between the lookup and the creation.
constexpr int kMostMakings = 3;

UniqueFd open_beneath(int root, const std::string& name, std::uint64_t flags, std::uint64_t mode) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  int descriptor = -1;
  int attempts = 0;
  do {
    descriptor = static_cast<int>(::syscall(SYS_openat2, root, name.c_str(), &how, sizeof how));
  } while (descriptor < 0 && (errno == EINTR || (errno == EAGAIN && ++attempts < kMostAttempts)));
  return UniqueFd(descriptor);
}

UniqueFd failed_with(int error) {
  errno = error;
  return {};
}

int result_of(int returned) { return returned == 0 ? 0 : errno; }

/// For calls that take no O_PATH descriptor.
std::string proc_path(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

}  // namespace

Tree::Tree(const std::string& directory) {
  UniqueFd root(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) throw Error(errno, "serve", directory, "name a directory that this user may enter");
  const UniqueFd probe = open_beneath(root.get(), ".", O_PATH | O_DIRECTORY, 0);
  if (!probe.valid()) {
    throw Error(
        errno, "serve", directory,
        "the system call openat2, which keeps clients below the directory, is needed: Linux 5.6 or later, and a "
        "sandbox that allows it");
  }
  if (::faccessat(AT_FDCWD, "/proc/self/fd", X_OK, 0) != 0) {
    throw Error(errno, "serve", directory, "mount /proc: files are checked through it before they are opened");
  }
  root_ = std::move(root);
}

UniqueFd Tree::resolve(const std::string& name, std::uint64_t flags, std::uint64_t mode) const {
  return open_beneath(root_.get(), name, flags, mode);
}

UniqueFd Tree::open(const std::string& name, int flags, mode_t mode) const {
  const auto bits = static_cast<std::uint64_t>(flags) | O_NONBLOCK | O_NOCTTY;
  const bool creates = (flags & O_CREAT) != 0;
  // O_EXCL does not open an existing file.
  const auto make = [&] { return resolve(name, bits | O_EXCL, mode & 07777U); };
  if (creates && (flags & O_EXCL) != 0) return make();
  const auto name_only = O_PATH | (static_cast<unsigned>(flags) & (O_NOFOLLOW | O_DIRECTORY));
  for (int attempt = 0; attempt < kMostMakings; ++attempt) {
    const UniqueFd named = resolve(name, name_only, 0);
    if (named.valid()) return open_named(named.get(), name, flags);
    if (errno != ENOENT || !creates) return {};
    UniqueFd made = make();
    if (made.valid() || errno != EEXIST) return made;
  }
  // The name exists but leads nowhere: a dangling symbolic link, whose target is created.
  UniqueFd made = resolve(name, bits, mode & 07777U);
  struct stat found{};
  if (made.valid() && (::fstat(made.get(), &found) != 0 || !S_ISREG(found.st_mode))) return failed_with(EOPNOTSUPP);
  return made;
}

/// Opens what was looked up as `named`, if it is a file or a directory. Other types are never opened: the process at a
/// FIFO's other end, or a device's driver, would notice it even if the descriptor were closed at once.
UniqueFd Tree::open_named(int named, const std::string& name, int flags) const {
  struct stat found{};
  if (::fstat(named, &found) != 0) return {};
  const int bits = (flags & ~(O_CREAT | O_NOFOLLOW)) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  switch (found.st_mode & S_IFMT) {
    case S_IFREG:
      return open_again(named, bits);
    case S_IFDIR:
      if ((flags & O_CREAT) != 0) return failed_with(EISDIR);
      // Opens by name, so that automounts are triggered; O_DIRECTORY opens nothing but directories.
      return resolve(name, static_cast<std::uint64_t>(bits | O_DIRECTORY | (flags & O_NOFOLLOW)), 0);
    case S_IFLNK:
      return failed_with(ELOOP);
    default:
      return failed_with(EOPNOTSUPP);
  }
}

UniqueFd Tree::look_up(const std::string& name, bool follow) const {
  return resolve(name, follow ? O_PATH : O_PATH | O_NOFOLLOW, 0);
}

/// No call made with a Place follows its last component. A trailing slash asks for a directory.
Tree::Place Tree::place_of(std::string_view name, bool directory) const {
  const std::size_t end = name.find_last_not_of('/');
  if (end == std::string_view::npos) return {{}, {}, name.empty() ? ENOENT : EXDEV};
  const std::string_view stripped = name.substr(0, end + 1);
  if (stripped.size() != name.size() && !directory &&
      !resolve(std::string(stripped), O_PATH | O_DIRECTORY | O_NOFOLLOW, 0).valid()) {
    return {{}, {}, errno};
  }
  const std::size_t slash = stripped.rfind('/');
  const bool deeper = slash != std::string_view::npos;
  Place place{.parent = resolve(deeper ? std::string(stripped.substr(0, slash + 1)) : ".", O_PATH | O_DIRECTORY, 0),
              .last = std::string(deeper ? stripped.substr(slash + 1) : stripped)};
  if (!place.parent.valid()) place.error = errno;
  return place;
}

int Tree::make_directory(const std::string& name, mode_t mode) const {
  const Place place = place_of(name, true);
  if (place.error != 0) return place.error;
  return result_of(::mkdirat(place.parent.get(), place.last.c_str(), mode & 07777U));
}

int Tree::make_node(const std::string& name, mode_t mode) const {
  if (!S_ISFIFO(mode) && !S_ISSOCK(mode)) return EPERM;
  const Place place = place_of(name, false);
  if (place.error != 0) return place.error;
  return result_of(::mknodat(place.parent.get(), place.last.c_str(), (mode & S_IFMT) | (mode & 07777U), 0));
}

int Tree::remove(const std::string& name, bool directory) const {
  const Place place = place_of(name, directory);
  if (place.error != 0) return place.error;
  return result_of(::unlinkat(place.parent.get(), place.last.c_str(), directory ? AT_REMOVEDIR : 0));
}

int Tree::rename(const std::string& from, const std::string& to, unsigned flags) const {
  const Place source = place_of(from, false);
  if (source.error != 0) return source.error;
  const Place target = place_of(to, true);
  if (target.error != 0) return target.error;
  if (to.ends_with('/')) {
    struct stat found{};
    if (::fstatat(source.parent.get(), source.last.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return errno;
    if (!S_ISDIR(found.st_mode)) return ENOTDIR;
  }
  return result_of(static_cast<int>(::syscall(SYS_renameat2, source.parent.get(), source.last.c_str(),
                                              target.parent.get(), target.last.c_str(), flags)));
}

int Tree::link(const std::string& from, const std::string& to) const {
  const Place source = place_of(from, false);
  if (source.error != 0) return source.error;
  const Place target = place_of(to, false);
  if (target.error != 0) return target.error;
  return result_of(
      ::linkat(source.parent.get(), source.last.c_str(), target.parent.get(), target.last.c_str(), /*flags=*/0));
}

int Tree::symlink(const std::string& name, const std::string& target) const {
  const Place place = place_of(name, false);
  if (place.error != 0) return place.error;
  return result_of(::symlinkat(target.c_str(), place.parent.get(), place.last.c_str()));
}

int Tree::read_link(const std::string& name, std::string& target) const {
  const UniqueFd link = look_up(name, false);
  if (!link.valid()) return errno;
  target.resize(4096);
  const ssize_t bytes = ::readlinkat(link.get(), "", target.data(), target.size());
  // readlinkat on the descriptor of something else than a symbolic link fails with ENOENT.
  if (bytes < 0) return errno == ENOENT ? EINVAL : errno;
  target.resize(static_cast<std::size_t>(bytes));
  return 0;
}

int change_mode(int descriptor, mode_t mode) {
  return result_of(::chmod(proc_path(descriptor).c_str(), mode & 07777U));
}

int change_owner(int descriptor, uid_t user, gid_t group) {
  return result_of(::fchownat(descriptor, "", user, group, AT_EMPTY_PATH));
}

int change_times(int descriptor, const timespec (&times)[2]) {
  return result_of(::utimensat(descriptor, "", times, AT_EMPTY_PATH));
}

}  // namespace wherry::file
