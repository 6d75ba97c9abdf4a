// SPDX-License-Identifier: Apache-2.0
#include "file/server/backing.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <numeric>
#include <utility>

#include "base/log.hpp"
#include "file/mapped/truncations.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

template <class Call>
ssize_t uninterrupted(Call call) {
  ssize_t result = -1;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

/// Makes a change by a handle, unless its client was cut off.
template <class Call>
ssize_t changed(WriteDelegation* delegation, Call call) {
  const WriteDelegation::Change change(delegation);
  if (change.is_allowed()) return uninterrupted(call);
  errno = ESTALE;
  return -1;
}

std::size_t bytes_of(std::span<const iovec> parts) {
  return std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                         [](std::size_t sum, const iovec& part) { return sum + part.iov_len; });
}

/// A shorter read costs the kernel little more than a system call.
constexpr std::size_t kLeastCopied = 4096;

/// Removes O_APPEND from a description while it lives: with O_APPEND, Linux treats pwrite as an append.
class NoAppend {
 public:
  explicit NoAppend(int descriptor) : descriptor_(descriptor), flags_(::fcntl(descriptor, F_GETFL)) {
    is_allowed_ = ::fcntl(descriptor_, F_SETFL, flags_ & ~O_APPEND) == 0;
  }
  NoAppend(const NoAppend&) = delete;
  NoAppend& operator=(const NoAppend&) = delete;
  ~NoAppend() {
    if (is_allowed_) ::fcntl(descriptor_, F_SETFL, flags_);
  }
  [[nodiscard]] bool is_allowed() const { return is_allowed_; }

 private:
  int descriptor_;
  int flags_;
  bool is_allowed_ = false;
};

}  // namespace

/// False: the kernel must read. What the reader knows of the size may be 10 ms old, so the size is compared after the
/// copy: a page that was cut off shows zeros.
bool Backing::read_in_place(std::span<const iovec> into, std::uint64_t offset) {
  const std::size_t bytes = bytes_of(into);
  if (bytes < kLeastCopied) return false;
  if (!in_place_) in_place_.emplace(descriptor());
  struct stat status{};
  return in_place_->read(into, bytes, offset, files::Path::automatic) && ::fstat(descriptor(), &status) == 0 &&
         offset + bytes <= static_cast<std::uint64_t>(status.st_size);
}

ssize_t Backing::read(std::span<const iovec> into, std::uint64_t offset) {
  if (read_in_place(into, offset)) return static_cast<ssize_t>(bytes_of(into));
  return uninterrupted(
      [&] { return ::preadv(descriptor(), into.data(), static_cast<int>(into.size()), static_cast<off_t>(offset)); });
}

ssize_t Backing::write(std::span<const iovec> from, std::uint64_t offset) {
  return changed(delegation(), [&] {
    return ::pwritev(descriptor(), from.data(), static_cast<int>(from.size()), static_cast<off_t>(offset));
  });
}

ssize_t Backing::write_before_end(std::span<const iovec> from, std::uint64_t offset) {
  return changed(delegation(), [&]() -> ssize_t {
    const NoAppend here(descriptor());
    if (!here.is_allowed()) return -1;
    return ::pwritev(descriptor(), from.data(), static_cast<int>(from.size()), static_cast<off_t>(offset));
  });
}

bool Backing::may_write_before_end() const { return NoAppend(descriptor()).is_allowed(); }

ssize_t Backing::append(std::span<const std::byte> data) {
  return changed(delegation(), [&] { return ::write(descriptor(), data.data(), data.size()); });
}

ssize_t Backing::copy(std::uint64_t offset, const Backing& to, std::uint64_t to_offset, std::size_t bytes) {
  return changed(to.delegation(), [&] {
    auto from_here = static_cast<off_t>(offset);
    auto to_there = static_cast<off_t>(to_offset);
    return ::copy_file_range(descriptor(), &from_here, to.descriptor(), &to_there, bytes, 0);
  });
}

int Backing::flush(bool data_only) {
  // Not held during the flush, which may wait for a disk, and changes nothing.
  if (!WriteDelegation::Change(delegation()).is_allowed()) return ESTALE;
  return (data_only ? ::fdatasync(descriptor()) : ::fsync(descriptor())) == 0 ? 0 : errno;
}

int Backing::status(layout::FileStatus& status) { return status_of(descriptor(), status); }

int Backing::set_size(std::uint64_t size) {
  const WriteDelegation::Change change(delegation());
  return change.is_allowed() ? mapped::set_size(descriptor(), size) : ESTALE;
}

/// If fchmod is not permitted, this process is unprivileged, and its write has already dropped the bits.
void Backing::drop_set_id(std::uint32_t mode, std::uint32_t by) const {
  const std::uint32_t dropped = bits_dropped(mode, by);
  if (dropped != 0 && ::fchmod(descriptor(), mode & 07777 & ~dropped) != 0)
    log::write(log::Level::debug, "wherry serve: cannot remove the set-user-ID bits of a written file");
}

int Backing::allocate(int mode, std::uint64_t offset, std::uint64_t length) {
  const ssize_t result = changed(delegation(), [&] {
    return ::fallocate(descriptor(), mode, static_cast<off_t>(offset), static_cast<off_t>(length));
  });
  return result == 0 ? 0 : errno;
}

void Backing::set_delegation(std::shared_ptr<WriteDelegation> delegation) {
  if (delegation_ != nullptr) delegation_->end();
  delegation_ = std::move(delegation);
}

int Backing::close() {
  set_delegation(nullptr);
  in_place_.reset();  // its mapping would keep the file open
  return ::close(descriptor_.release()) == 0 ? 0 : errno;
}

}  // namespace wherry::file
