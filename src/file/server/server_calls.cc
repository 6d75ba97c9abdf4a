// SPDX-License-Identifier: Apache-2.0
#include "file/server/server_calls.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "file/mapped/truncations.hpp"
#include "file/server/lease.hpp"
#include "file/wire/open_again.hpp"
#include "file/wire/status.hpp"

namespace wherry::file {
namespace {

using layout::FileCall;
using layout::FileRequest;

FileCall call_of(const Request& request) { return static_cast<FileCall>(request.header.call); }

bool asks(const Request& request, std::uint32_t flag) { return (request.header.flags & flag) != 0; }

template <class T>
Outcome with_payload(int error, const T& content) {
  Outcome outcome{.error = error};
  if (error != 0) return outcome;
  const auto bytes = std::as_bytes(std::span(&content, 1));
  outcome.payload.assign(bytes.begin(), bytes.end());
  return outcome;
}

Outcome failed(int error) { return {.error = error}; }

/// The answer to a failed non-blocking open: EAGAIN means a lease.
Outcome not_opened(int error) { return error == EAGAIN ? Outcome::of_lease() : failed(error); }

/// Whether a change from now on gives the file another time of change.
bool is_past(const layout::FileTime& changed) {
  using namespace std::chrono;
  constexpr nanoseconds kTick = 20ms;  // the kernel's clock for files has ticks of up to 10 ms
  constexpr nanoseconds kCoarse = 2s;  // some file systems keep seconds only
  const nanoseconds time = seconds(changed.seconds) + nanoseconds(changed.nanoseconds);
  return system_clock::now().time_since_epoch() - time > (changed.nanoseconds % 1000 != 0 ? kTick : kCoarse);
}

bool is_stable(int descriptor, const layout::FileStatus& status) {
  return S_ISREG(status.mode) && is_past(status.changed) && is_local(descriptor) && has_no_writer(descriptor);
}

int open_flags(std::uint32_t asked) {
  using namespace layout;
  constexpr std::uint32_t kBoth = kFileOpenRead | kFileOpenWrite;
  int flags = (asked & kBoth) == kBoth ? O_RDWR : ((asked & kFileOpenWrite) != 0 ? O_WRONLY : O_RDONLY);
  constexpr std::array<std::pair<std::uint32_t, int>, 8> kBits{{{kFileOpenAppend, O_APPEND},
                                                                {kFileOpenCreate, O_CREAT},
                                                                {kFileOpenExclusive, O_EXCL},
                                                                {kFileOpenTruncate, O_TRUNC},
                                                                {kFileOpenDirectory, O_DIRECTORY},
                                                                {kFileOpenNoFollow, O_NOFOLLOW},
                                                                {kFileOpenSync, O_SYNC},
                                                                {kFileOpenDataSync, O_DSYNC}}};
  for (const auto& [asked_bit, bit] : kBits) {
    if ((asked & asked_bit) != 0) flags |= bit;
  }
  return flags;
}

/// Flags that are invalid if a handle's file is opened again.
constexpr std::uint32_t kMakes =
    layout::kFileOpenCreate | layout::kFileOpenExclusive | layout::kFileOpenTruncate | layout::kFileOpenDirectory;

/// Whether a descriptor is open for the requested access.
bool has_access(int descriptor, std::uint32_t asked) {
  const int mode = ::fcntl(descriptor, F_GETFL) & O_ACCMODE;
  const bool reads = mode == O_RDONLY || mode == O_RDWR;
  const bool writes = mode == O_WRONLY || mode == O_RDWR;
  const bool wants_write = (asked & layout::kFileOpenWrite) != 0;
  const bool wants_read = (asked & layout::kFileOpenRead) != 0 || !wants_write;
  return (reads || !wants_read) && (writes || !wants_write);
}

/// The type bits of a mode.
mode_t type_of(std::uint32_t node) {
  switch (static_cast<layout::FileNode>(node)) {
    case layout::FileNode::fifo:
      return S_IFIFO;
    case layout::FileNode::socket:
      return S_IFSOCK;
  }
  return 0;
}

bool has_zero(const std::string& name) { return name.find('\0') != std::string::npos; }

}  // namespace

bool is_valid(const FileRequest& header) {
  using namespace layout;
  if (header.call == 0 || header.call >= kFileCalls || header.repeated > 1) return false;
  if (header.name_bytes > kFileMaxName || header.second_bytes > kFileMaxName) return false;
  if (std::ranges::any_of(header.reserved, [](std::uint32_t word) { return word != 0; })) return false;
  switch (static_cast<FileCall>(header.call)) {
    case FileCall::read:
    case FileCall::write:
    case FileCall::copy:
      return header.length <= kFileMaxLength;
    case FileCall::append:
      return header.length <= kFileMaxAppend;
    case FileCall::set_xattr:
      return header.length <= kFileMaxXattr;
    default:
      return true;
  }
}

Outcome Calls::perform(const Request& request) {
  if (const int error = refused(request); error != 0) return failed(error);
  if (has_zero(request.name)) return failed(EINVAL);
  switch (call_of(request)) {
    case FileCall::open:
      return open(request);
    case FileCall::close:
      return failed(handles_.close(request.header.handle));
    case FileCall::status:
      return status(request);
    case FileCall::set_size:
      return set_size(request);
    case FileCall::set_mode:
      return set_mode(request);
    case FileCall::set_times:
      return set_times(request);
    case FileCall::set_owner:
      return set_owner(request);
    case FileCall::file_system:
      return file_system(request);
    case FileCall::flush:
      return flush(request);
    case FileCall::allocate:
      return allocate(request);
    case FileCall::seek:
      return seek(request);
    case FileCall::list:
      return list(request);
    case FileCall::get_xattr:
      return get_xattr(request);
    case FileCall::list_xattrs:
      return list_xattrs(request);
    case FileCall::remove_xattr:
      return remove_xattr(request);
    case FileCall::delegate:
      return delegate(request);
    case FileCall::give_back:
      return give_back(request);
    case FileCall::acknowledge_recalls:
      return acknowledge_recalls(request);
    case FileCall::delegate_write:
      return delegate_write(request);
    case FileCall::return_write:
      return return_write(request);
    case FileCall::open_locks:
      return open_locks(request);
    case FileCall::set_lock:
      return set_lock(request);
    case FileCall::get_lock:
      return get_lock(request);
    case FileCall::make_ticket:
      return make_ticket(request);
    case FileCall::open_ticket:
      return open_ticket(request);
    case FileCall::end_tickets:
      return end_tickets(request);
    case FileCall::read_link: {
      std::string target;
      Outcome outcome = failed(tree_.read_link(request.name, target));
      const auto bytes = std::as_bytes(std::span(target));
      if (outcome.error == 0) outcome.payload.assign(bytes.begin(), bytes.end());
      return outcome;
    }
    default:
      return rename(request);
  }
}

int Calls::refused(const Request& request) const {
  if (const int error = refused_by_ticket(request); error != 0 || !terms_.read_only) return error;
  constexpr std::uint32_t kChanges =
      layout::kFileOpenWrite | layout::kFileOpenAppend | layout::kFileOpenCreate | layout::kFileOpenTruncate;
  switch (call_of(request)) {
    case FileCall::open:
    case FileCall::make_ticket:
      return asks(request, kChanges) ? EROFS : 0;
    case FileCall::close:
    case FileCall::open_ticket:
    case FileCall::end_tickets:
    case FileCall::read:
    case FileCall::status:
    case FileCall::file_system:
    case FileCall::flush:
    case FileCall::seek:
    case FileCall::list:
    case FileCall::read_link:
    case FileCall::get_xattr:
    case FileCall::list_xattrs:
    case FileCall::delegate:
    case FileCall::give_back:
    case FileCall::acknowledge_recalls:
    case FileCall::open_locks:
    case FileCall::set_lock:
    case FileCall::get_lock:
      return 0;
    default:
      return EROFS;
  }
}

Calls::Target Calls::target_of(const Request& request, bool follow) {
  Target target;
  if (request.header.handle != layout::kFileNoHandle) {
    const OpenFile* const file = handles_.find(request.header.handle);
    if (file == nullptr) return {{}, -1, EBADF};
    target.descriptor = file->backing->descriptor();
    return target;
  }
  target.own = tree_.look_up(request.name, follow);
  if (!target.own.valid()) target.error = errno;
  target.descriptor = target.own.get();
  return target;
}

Outcome Calls::open(const Request& request) {
  if ((request.header.flags & ~layout::kFileOpenAll) != 0) return failed(EINVAL);
  // O_TRUNC without write access would ignore leases.
  if (asks(request, layout::kFileOpenTruncate) && !asks(request, layout::kFileOpenWrite)) return failed(EINVAL);
  const bool again = request.header.handle != layout::kFileNoHandle;
  const OpenFile* const file = again ? handles_.find(request.header.handle) : nullptr;
  if (again && file == nullptr) return failed(EBADF);
  if (again && (!request.name.empty() || asks(request, kMakes))) return failed(EINVAL);
  // No path may lead to the file any more, so the access of its open handle is the limit.
  if (again && !has_access(file->backing->descriptor(), request.header.flags)) return failed(EACCES);
  Handles::Room room(handles_);
  if (room.error() != 0) return failed(room.error());
  const int flags = open_flags(request.header.flags);
  constexpr int kFlags = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  UniqueFd descriptor = again ? open_again(file->backing->descriptor(), (flags & ~O_NOFOLLOW) | kFlags)
                              : tree_.open(request.name, flags, request.header.mode);
  int error = descriptor.valid() ? 0 : errno;
  // It is unknown whether the first attempt made the file. A lock file must be neither taken twice nor considered free.
  if (error == EEXIST && request.header.repeated != 0) error = EIO;
  layout::FileStatus status{};
  if (error == 0) error = status_of(descriptor.get(), status);
  if (error != 0) return not_opened(error);
  if (asks(request, layout::kFileOpenTruncate)) mapped::note_truncation(descriptor.get());
  Outcome outcome = with_payload(0, status);
  // Of use only to a process that the kernel allows to take the descriptor.
  if (terms_.lends && S_ISREG(status.mode)) outcome.position = static_cast<std::uint64_t>(descriptor.get()) + 1;
  if (asks(request, layout::kFileOpenTellStable) && is_stable(descriptor.get(), status))
    outcome.position |= layout::kFileStable;
  outcome.value = room.add({std::make_unique<Backing>(std::move(descriptor)), asks(request, layout::kFileOpenAppend)});
  return outcome;
}

Outcome Calls::status(const Request& request) {
  layout::FileStatus status{};
  int error = EBADF;
  if (request.header.handle != layout::kFileNoHandle) {
    const OpenFile* const file = handles_.find(request.header.handle);
    if (file != nullptr) error = file->backing->status(status);
  } else {
    const Target target = target_of(request, !asks(request, layout::kFileLookNoFollow));
    error = target.error != 0 ? target.error : status_of(target.descriptor, status);
  }
  return with_payload(error, status);
}

Outcome Calls::set_size(const Request& request) {
  const std::uint64_t size = request.header.offset;
  if (size > INT64_MAX) return failed(EINVAL);
  if (request.header.handle != layout::kFileNoHandle) {
    const OpenFile* const file = handles_.find(request.header.handle);
    return failed(file == nullptr ? EBADF : file->backing->set_size(size));
  }
  const UniqueFd file = tree_.open(request.name, O_WRONLY, 0);
  if (!file.valid()) return not_opened(errno);
  return failed(mapped::set_size(file.get(), size));
}

Outcome Calls::set_mode(const Request& request) {
  const Target target = target_of(request, true);
  return failed(target.error != 0 ? target.error : change_mode(target.descriptor, request.header.mode));
}

Outcome Calls::set_times(const Request& request) {
  layout::FileTimes times{};
  timespec wanted[2] = {};
  if (request.second.size() != sizeof times) return failed(EINVAL);
  std::memcpy(&times, request.second.data(), sizeof times);
  if (!to_timespec(times.accessed, wanted[0]) || !to_timespec(times.modified, wanted[1])) return failed(EINVAL);
  const Target target = target_of(request, !asks(request, layout::kFileLookNoFollow));
  return failed(target.error != 0 ? target.error : change_times(target.descriptor, wanted));
}

Outcome Calls::set_owner(const Request& request) {
  const FileRequest& header = request.header;
  if (header.offset > UINT32_MAX || header.length > UINT32_MAX) return failed(EINVAL);
  const Target target = target_of(request, !asks(request, layout::kFileLookNoFollow));
  if (target.error != 0) return failed(target.error);
  return failed(change_owner(target.descriptor, static_cast<uid_t>(header.offset), static_cast<gid_t>(header.length)));
}

Outcome Calls::file_system(const Request& request) {
  const Target target = target_of(request, true);
  if (target.error != 0) return failed(target.error);
  layout::FileSystemStatus status{};
  const int error = file_system_of(target.descriptor, status);
  return with_payload(error, status);
}

Outcome Calls::flush(const Request& request) {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return failed(EBADF);
  return failed(file->backing->flush(asks(request, layout::kFileFlushDataOnly)));
}

Outcome Calls::allocate(const Request& request) {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return failed(EBADF);
  const FileRequest& header = request.header;
  if (header.offset > INT64_MAX || header.length > INT64_MAX) return failed(EINVAL);
  int mode = asks(request, layout::kFileAllocateKeepSize) ? FALLOC_FL_KEEP_SIZE : 0;
  if (asks(request, layout::kFileAllocatePunch)) mode |= FALLOC_FL_PUNCH_HOLE;
  if (asks(request, layout::kFileAllocateZero)) mode |= FALLOC_FL_ZERO_RANGE;
  return failed(file->backing->allocate(mode, header.offset, header.length));
}

Outcome Calls::seek(const Request& request) {
  const OpenFile* const file = handles_.find(request.header.handle);
  if (file == nullptr) return failed(EBADF);
  if (request.header.offset > INT64_MAX) return failed(ENXIO);
  const auto what = static_cast<layout::FileSeek>(request.header.flags);
  const bool data = what == layout::FileSeek::data;
  if (!data && what != layout::FileSeek::hole) return failed(EINVAL);
  const off_t found =
      ::lseek(file->backing->descriptor(), static_cast<off_t>(request.header.offset), data ? SEEK_DATA : SEEK_HOLE);
  if (found < 0) return failed(errno);
  return {.position = static_cast<std::uint64_t>(found)};
}

/// All calls that make, rename or remove a name.
Outcome Calls::rename(const Request& request) {
  if (has_zero(request.second)) return failed(EINVAL);
  int error = EINVAL;
  switch (call_of(request)) {
    case FileCall::make_directory:
      error = tree_.make_directory(request.name, request.header.mode);
      break;
    case FileCall::make_node:
      error = tree_.make_node(request.name, type_of(request.header.flags) | (request.header.mode & 07777U));
      break;
    case FileCall::remove:
      error = tree_.remove(request.name, asks(request, layout::kFileRemoveDirectory));
      break;
    case FileCall::rename:
      static_assert(layout::kFileRenameNoReplace == RENAME_NOREPLACE && layout::kFileRenameExchange == RENAME_EXCHANGE);
      if ((request.header.flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) == 0)
        error = tree_.rename(request.name, request.second, request.header.flags);
      break;
    case FileCall::link:
      error = tree_.link(request.name, request.second);
      break;
    case FileCall::symlink:
      error = tree_.symlink(request.name, request.second);
      break;
    default:
      break;
  }
  return failed(request.header.repeated != 0 && error != 0 ? settle(request, error) : error);
}

/// A repeated request that fails may have succeeded the first time. Returns 0 if the files prove that it did, EIO if
/// they cannot tell, otherwise the error.
int Calls::settle(const Request& request, int error) const {
  const auto same = [&] {
    layout::FileStatus one{};
    layout::FileStatus other{};
    const UniqueFd first = tree_.look_up(request.name, false);
    const UniqueFd second = tree_.look_up(request.second, false);
    return first.valid() && second.valid() && status_of(first.get(), one) == 0 && status_of(second.get(), other) == 0 &&
           one.device == other.device && one.inode == other.inode;
  };
  std::string target;
  switch (call_of(request)) {
    case FileCall::make_directory:  // often used as a lock
    case FileCall::make_node:
      return error == EEXIST ? EIO : error;
    case FileCall::remove:
      return error == ENOENT ? 0 : error;
    case FileCall::rename:
      return error == ENOENT && tree_.look_up(request.second, false).valid() ? 0 : error;
    case FileCall::link:
      return error == EEXIST && same() ? 0 : error;
    case FileCall::symlink:
      return error == EEXIST && tree_.read_link(request.name, target) == 0 && target == request.second ? 0 : error;
    default:
      return error;
  }
}

}  // namespace wherry::file
