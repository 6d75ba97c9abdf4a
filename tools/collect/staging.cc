// SPDX-License-Identifier: Apache-2.0
#include "collect/staging.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "collect/refusal.hpp"

namespace wherry::tools {
namespace {

constexpr int kOpenStaging = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr const char* kLock = "lock";
constexpr const char* kEnded = "ended";  // the name of the lock of a directory that is being removed
constexpr int kAttempts = 100;           // each attempt lost to another collector that cleaned up at the same moment

std::string random_name() {
  std::uint64_t words[2] = {};
  if (::getrandom(words, sizeof words, 0) != sizeof words) throw Refusal(errno);
  return fmt::format("{}{:016x}{:016x}", kStagingPrefix, words[0], words[1]);
}

bool is_private(const struct stat& status) { return S_ISDIR(status.st_mode) && (status.st_mode & 077) == 0; }

template <class Visit>
void for_each_entry(int directory, Visit visit) {
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // for the listing
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(copy), ::closedir);
  if (!listing) return UniqueFd(copy).reset();
  while (const dirent* entry = ::readdir(listing.get())) visit(entry->d_name);
}

// Renames the lock while it is held, so that a later holder does not take the directory for its own. Closes the lock
// before it is removed, because NFS and FUSE rename a removed open file within the directory.
void remove(int top, const char* name, int directory, UniqueFd& lock) {
  ::renameat(directory, kLock, directory, kEnded);
  lock.reset();
  for_each_entry(directory, [directory](std::string_view entry) {
    if (entry != kEnded) ::unlinkat(directory, std::string(entry).c_str(), 0);
  });
  ::unlinkat(directory, kEnded, 0);
  ::unlinkat(top, name, AT_REMOVEDIR);
}

void remove_if_stale(int top, const char* name) {
  const UniqueFd directory(::openat(top, name, kOpenStaging));
  struct stat status{};
  if (!directory.valid() || ::fstat(directory.get(), &status) != 0) return;
  if (status.st_uid != ::geteuid() || !is_private(status)) return;
  UniqueFd lock(::openat(directory.get(), kLock, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  // A directory without a lock may be new; if it is removed, its maker notices. Or the process that was removing it has
  // died.
  const bool ending = lock.valid() || ::faccessat(directory.get(), kEnded, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  if (!ending) return static_cast<void>(::unlinkat(top, name, AT_REMOVEDIR));
  remove(top, name, directory.get(), lock);
}

}  // namespace

Staging::Staging(int top) : top_(top) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (make()) return;
  }
  throw Refusal(EEXIST, "cannot keep a staging directory; find the program that removes files in the destination");
}

Staging::~Staging() { remove(top_, name_.c_str(), directory_.get(), lock_); }

std::string Staging::new_name() { return std::to_string(names_.fetch_add(1, std::memory_order_relaxed)); }

// False: another collector took the directory for a stale one and removed it.
bool Staging::make() {
  name_ = random_name();
  if (::mkdirat(top_, name_.c_str(), S_IRWXU) != 0) throw Refusal(errno);
  directory_.reset(::openat(top_, name_.c_str(), kOpenStaging));
  if (!directory_.valid() && errno == ENOENT) return false;
  if (!directory_.valid()) throw Refusal(errno);
  lock_.reset(::openat(directory_.get(), kLock, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock_.valid() && errno == ENOENT) return false;
  if (!lock_.valid()) throw Refusal(errno);
  // On a file system without locks, stale directories stay.
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return own();
}

// Whether the new directory still exists, is private, and was not replaced by another.
bool Staging::own() const {
  struct stat directory{};
  struct stat lock{};
  struct stat named{};
  if (::fstat(directory_.get(), &directory) != 0 || ::fstat(lock_.get(), &lock) != 0) throw Refusal(errno);
  if (!is_private(directory) || directory.st_uid != lock.st_uid) {
    throw Refusal(EPERM,
                  "the staging directory is not the collector's own; find the program that writes in the destination");
  }
  // The lock keeps its name until a former holder removes the directory.
  return ::fstatat(directory_.get(), kLock, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == lock.st_ino;
}

void Staging::remove_stale(int top) {
  for_each_entry(top, [top](std::string_view entry) {
    if (entry.starts_with(kStagingPrefix)) remove_if_stale(top, std::string(entry).c_str());
  });
}

}  // namespace wherry::tools
