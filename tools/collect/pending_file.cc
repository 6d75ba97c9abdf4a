// SPDX-License-Identifier: Apache-2.0
#include "collect/pending_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "collect/permissions.hpp"

namespace wherry::tools {
namespace {

// What the kernel answers where a filesystem has no unnamed files.
bool means_unsupported(int error) { return error == EOPNOTSUPP || error == EISDIR || error == EINVAL; }

}  // namespace

PendingFile::PendingFile(Destination& destination, Place place) : destination_(destination), place_(std::move(place)) {
  if (destination_.unnamed_files()) open_unnamed();
  if (!file_.valid()) open_staged();
}

PendingFile::~PendingFile() {
  if (!staged_.empty()) ::unlinkat(destination_.staging(), staged_.c_str(), 0);
}

void PendingFile::open_unnamed() {
  file_.reset(::openat(place_.directory->get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file_.valid()) return;
  if (!means_unsupported(errno)) throw Refusal(errno);
  destination_.no_unnamed_files();
}

void PendingFile::open_staged() {
  const std::string name = destination_.staging_name();
  file_.reset(
      ::openat(destination_.staging(), name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_.valid()) throw Refusal(errno);
  staged_ = name;
}

void PendingFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Refusal(n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  end_ = std::max(end_, offset);
}

void PendingFile::complete(std::uint64_t length, std::uint32_t mode, timespec mtime) {
  // A hole at the end has no data that would have made it.
  if (length != end_ && ::ftruncate(file_.get(), static_cast<off_t>(length)) != 0) throw Refusal(errno);
  const timespec times[2] = {{0, UTIME_OMIT}, mtime};
  if (::fchmod(file_.get(), mode & kPermissions) != 0 || ::futimens(file_.get(), times) != 0) throw Refusal(errno);
  give_name();
}

void PendingFile::give_name() {
  if (!staged_.empty()) return rename_staged();
  const std::string self = fmt::format("/proc/self/fd/{}", file_.get());
  if (::linkat(AT_FDCWD, self.c_str(), place_.directory->get(), place_.name.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  if (errno != EEXIST) throw Refusal(errno);
  // The name is taken. Only a rename replaces it without a moment in which neither file has it, and only a file with a
  // name can be renamed.
  const std::string name = destination_.staging_name();
  if (::linkat(AT_FDCWD, self.c_str(), destination_.staging(), name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    throw Refusal(errno);
  }
  staged_ = name;
  rename_staged();
}

void PendingFile::rename_staged() {
  if (::renameat(destination_.staging(), staged_.c_str(), place_.directory->get(), place_.name.c_str()) != 0) {
    if (errno == EISDIR || errno == ENOTEMPTY) throw Refusal(EISDIR, "a directory has this name in the destination");
    if (errno == EXDEV) throw Refusal(EXDEV, "another filesystem is mounted there; collect into it directly");
    throw Refusal(errno);
  }
  staged_.clear();
}

}  // namespace wherry::tools
