// SPDX-License-Identifier: Apache-2.0
#include "file/revocations_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/log.hpp"
#include "file/cache.hpp"

namespace wherry::file {
namespace {

constexpr int kTriesToTake = 100;

/// With its name, once it is whole. Invalid: errno says why; EEXIST: another card was faster.
UniqueFd make(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path();
  UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) return {};
  // All of it has memory from the start: a count on a full file system would be SIGBUS.
  if (const int error = ::posix_fallocate(file.get(), 0, sizeof(layout::FileRevocations)); error != 0) {
    errno = error;
    return {};
  }
  const std::array<std::uint32_t, 2> head{layout::kFileRevocationsVersion, layout::kFileRevocationsMagic};
  static_assert(offsetof(layout::FileRevocations, magic) == sizeof head[0]);
  if (::fchmod(file.get(), 0600) != 0 || ::pwrite(file.get(), head.data(), sizeof head, 0) != sizeof head) return {};
  const std::string self = "/proc/self/fd/" + std::to_string(file.get());
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) return {};
  return file;
}

bool is_whole(int file) {
  layout::FileRevocations* const table = map_revocations(file);
  if (table != nullptr) ::munmap(table, sizeof *table);
  return table != nullptr;
}

bool any_segment(const std::filesystem::path& path) {
  // Of the same user: only the beginnings of the two names differ.
  const std::string user = path.filename().string().substr(kRevocationsPrefix.size());
  const std::string prefix = std::string(kSegmentPrefix) + user;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == prefix || name.starts_with(prefix + "-")) return true;
  }
  return static_cast<bool>(error);
}

}  // namespace

RevocationsFile::RevocationsFile(const std::string& segment) {
  std::array<char, kPathBytes> path{};
  if (!revocations_path(segment, path)) return;
  path_ = path.data();
  for (int i = 0; i < kTriesToTake; ++i) {
    if (take()) return;
    if (errno != EEXIST && errno != ENOENT) break;
  }
  log::write(log::Level::warning,
             path_ + ": " + std::generic_category().message(errno) +
                 "; what other cards of this user change is seen 100 ms later, or when a file is opened");
}

/// False with EEXIST or ENOENT: it has just come or gone, look again.
bool RevocationsFile::take() {
  UniqueFd found(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!found.valid() && errno == ENOENT) found = make(path_);
  if (!found.valid()) return false;
  // While it is removed the exclusive lock is held, for a moment.
  struct ::stat status{};
  if (::flock(found.get(), LOCK_SH) != 0 || ::fstat(found.get(), &status) != 0) return false;
  if (status.st_nlink == 0) {
    errno = ENOENT;
    return false;
  }
  if (!is_whole(found.get())) {
    errno = EINVAL;
    return false;
  }
  file_ = std::move(found);
  return true;
}

RevocationsFile::~RevocationsFile() {
  if (!file_.valid() || ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 || any_segment(path_)) return;
  ::unlink(path_.c_str());
}

}  // namespace wherry::file
