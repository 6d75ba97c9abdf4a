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

constexpr std::uint64_t kWriteBack = 8 << 20;  // bytes; enough to keep a disk busy while the next bytes arrive

// The errors of a filesystem without unnamed files.
bool means_unsupported(int error) { return error == EOPNOTSUPP || error == EISDIR || error == EINVAL; }

}  // namespace

PendingFile::PendingFile(Destination& destination, Place place) : destination_(destination), place_(std::move(place)) {
  if (file_system().unnamed_files()) open_unnamed();
  if (!file_.valid()) open_staged();
  destination_.pending_file_came();
}

PendingFile::~PendingFile() {
  destination_.pending_file_left();
  if (staging_ != nullptr) ::unlinkat(staging_->get(), staged_.c_str(), 0);
}

void PendingFile::open_unnamed() {
  file_.reset(::openat(place_.directory->get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file_.valid()) return;
  if (!means_unsupported(errno)) throw Refusal(errno);
  file_system().no_unnamed_files();
}

void PendingFile::open_staged() {
  Staging& staging = file_system().staging();
  const std::string name = staging.new_name();
  file_.reset(::openat(staging.get(), name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_.valid()) throw Refusal(errno);
  staging_ = &staging;
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
  if (destination_.durable() && end_ - written_back_ >= kWriteBack) start_writing_back();
}

// Starts write-back early, so that the later flush is short. Errors are reported by the flush.
void PendingFile::start_writing_back() {
  ::sync_file_range(file_.get(), static_cast<off64_t>(written_back_), static_cast<off64_t>(end_ - written_back_),
                    SYNC_FILE_RANGE_WRITE);
  written_back_ = end_;
}

void PendingFile::complete(std::uint64_t length, std::uint32_t mode, timespec mtime) {
  // A hole at the end has no data that would extend the file.
  if (length != end_ && ::ftruncate(file_.get(), static_cast<off_t>(length)) != 0) throw Refusal(errno);
  const timespec times[2] = {{0, UTIME_OMIT}, mtime};
  if (::fchmod(file_.get(), mode & kPermissions) != 0 || ::futimens(file_.get(), times) != 0) throw Refusal(errno);
}

void PendingFile::check_flushed(int flush_error) {
  // A flush may have failed because of another file, so this one is synced separately.
  const bool asked = flush_error != 0 || file_system().each_file_flushed();
  const int result = asked ? ::fsync(file_.get()) : ::sync_file_range(file_.get(), 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE);
  // EINVAL: the file system does not support fsync; it is ignored, as dd does.
  if (result != 0 && errno != EINVAL) throw Refusal(errno);
}

// NFS, CIFS and FUSE may report a full disk only when a descriptor of the file is closed. A staged file has a name, so
// its descriptor is not needed any more. File systems with syncfs and unnamed files report no errors at a close.
void PendingFile::check_close() {
  if (staging_ == nullptr && !file_system().each_file_flushed()) return;
  const int closed = staging_ != nullptr ? file_.release() : ::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0);
  if (closed < 0 || (::close(closed) != 0 && errno != EINTR)) throw Refusal(errno);
}

void PendingFile::give_name() {
  check_close();
  if (staging_ != nullptr) return rename_staged();
  const std::string self = fmt::format("/proc/self/fd/{}", file_.get());
  if (::linkat(AT_FDCWD, self.c_str(), place_.directory->get(), place_.name.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  if (errno != EEXIST) throw Refusal(errno);
  // The name is taken. Only rename replaces it atomically, and only a file with a name can be renamed.
  Staging& staging = file_system().staging();
  const std::string name = staging.new_name();
  if (::linkat(AT_FDCWD, self.c_str(), staging.get(), name.c_str(), AT_SYMLINK_FOLLOW) != 0) throw Refusal(errno);
  staging_ = &staging;
  staged_ = name;
  rename_staged();
}

void PendingFile::rename_staged() {
  if (::renameat(staging_->get(), staged_.c_str(), place_.directory->get(), place_.name.c_str()) != 0) {
    if (errno == EISDIR || errno == ENOTEMPTY) throw Refusal(EISDIR, "a directory has this name in the destination");
    throw Refusal(errno);
  }
  staging_ = nullptr;
}

}  // namespace wherry::tools
