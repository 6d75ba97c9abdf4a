// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <wherry/error.hpp>
#include <wherry/file_path.hpp>
#include <wherry/result.hpp>

/// Files (docs/files.md). A file's name is
///   - a path of this machine, `/data/x`: the process opens it itself; or
///   - `wherry://NODE:PORT/path`, relative to the directory that the `wherry serve` at that address serves.
///
/// A file of this machine that is read repeatedly is mapped, and read by copies from the kernel's page cache, without a
/// system call. A read gives what the kernel's own call would give at that moment, by whatever way the file was
/// changed. One exception: for at most 10 ms after the file was made shorter, a read of the page in which it ends now
/// may give zeros behind the end. That is not so after truncations by this interface, and those that docs/files.md
/// names.
///
/// Every change is made by the kernel that has the file before the call returns.
namespace wherry::files {

struct Options {
  /// Empty: WHERRY_FILE_PATH, `auto` if that is not set; where a file does not have the path named there, `kernel` or
  /// `host`. One that is given here and that the file does not have is refused by `open`: EOPNOTSUPP.
  std::optional<Path> path{};
  /// How long a call waits for a host's server that is gone, then EIO. The first for a host waits for a server that
  /// does not listen yet, WHERRY_CONNECT_TIMEOUT at most, then ECONNREFUSED.
  std::chrono::milliseconds timeout{60'000};
};

struct Status {
  std::uint64_t device = 0;  ///< of a host with another kernel: a number that no other host's devices have
  std::uint64_t inode = 0;
  std::uint64_t size = 0;    ///< bytes
  std::uint64_t blocks = 0;  ///< of 512 bytes, allocated
  std::uint32_t mode = 0;    ///< type and permissions, as st_mode
  std::uint32_t links = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::int64_t accessed = 0;  ///< ns since 1970, as the others
  std::int64_t modified = 0;
  std::int64_t changed = 0;
  std::int64_t born = 0;  ///< 0: the file system does not say
};

/// An open file. It has no offset: each call says where.
///
/// Threads: any number, at once. Calls on files of one host may wait for each other. Closing, moving and
/// destroying: one thread, while no other uses it.
///
/// Blocking: a call blocks as long as the kernel's own, or as the host. A host's server that is killed and started
/// again is found again by the call that notices, and the call is repeated (docs/files.md says what can then be EIO or
/// ESTALE); after Options::timeout it is EIO.
///
/// Signals: the first file that is mapped installs handlers of SIGBUS and SIGSEGV, which hand on every fault that no
/// copy of this library raised to the handlers that were there before. A program installs its own ones before; later
/// ones end reading in place within 10 ms. A copy meets a fault where the file is made shorter at that moment, where
/// its disk fails, and where the buffer is bad, which is EFAULT. In a thread that blocks one of the two signals files
/// are read by the kernel's calls; such a thread blocks it 10 ms before it reads, or uses Path::kernel.
///
/// POSIX locks (fcntl) that this process has on the same file by a descriptor of its own may end at any call on the
/// file of a host under the same kernel, and when it is closed: descriptors of it are taken and closed.
///
/// Errors: Result::error is what the kernel's call would say, and EBADF on a closed or moved-from file and for what it
/// was not opened for, EOPNOTSUPP for a path that the file does not have. Result::bytes were moved before the error.
/// No room and no quota left are errors of the write itself.
///
/// Fork: a file of this machine is the child's as well. One of a host stays the parent's: in the child every call on
/// it is EBADF; the child opens it again. Nothing is inherited through exec.
class File {
 public:
  class Impl;
  File() noexcept;
  explicit File(std::unique_ptr<Impl> impl) noexcept;
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  /// Closes.
  ~File();

  [[nodiscard]] bool is_open() const noexcept { return impl_ != nullptr; }
  /// Frees the file. What was written stays written; what failed has failed in its own call, but for EIO of a host that
  /// was started again and has lost what was not synced: that is reported here if no call was in between.
  Result close() noexcept;

  /// Reads at an offset. Fewer bytes than asked for: the end of the file, or an error after some. At the end, where no
  /// byte follows: Result::at_end, so that `while (const Result got = file.pread(...))` ends there. `path`: for this
  /// call only.
  [[nodiscard]] Result pread(std::span<std::byte> to, std::uint64_t offset) noexcept;
  [[nodiscard]] Result pread(std::span<std::byte> to, std::uint64_t offset, Path path) noexcept;
  [[nodiscard]] Result preadv(std::span<const iovec> to, std::uint64_t offset) noexcept;
  [[nodiscard]] Result preadv(std::span<const iovec> to, std::uint64_t offset, Path path) noexcept;

  /// Writes at an offset. Fewer bytes than asked for come with an error. EINVAL on a file opened with O_APPEND.
  [[nodiscard]] Result pwrite(std::span<const std::byte> from, std::uint64_t offset) noexcept;
  [[nodiscard]] Result pwrite(std::span<const std::byte> from, std::uint64_t offset, Path path) noexcept;
  [[nodiscard]] Result pwritev(std::span<const iovec> from, std::uint64_t offset) noexcept;
  [[nodiscard]] Result pwritev(std::span<const iovec> from, std::uint64_t offset, Path path) noexcept;

  /// Writes at the end of a file opened with O_APPEND (else EINVAL). Up to 16 MiB are in one piece there, beside
  /// appends of other programs too.
  [[nodiscard]] Result append(std::span<const std::byte> from) noexcept;

  /// Once this returns without an error, what was written is durable where the file is. `data_only`: as fdatasync.
  [[nodiscard]] Result sync(bool data_only = false) noexcept;
  [[nodiscard]] Result stat(Status& status) noexcept;
  [[nodiscard]] Result set_size(std::uint64_t size) noexcept;

  /// Bytes of a file of this machine in the kernel's page cache, without a copy: `length` of them, or up to the end of
  /// the file. They are mapped until the file is closed, as by mmap(2), whatever the path: a later change is seen
  /// there, a forked child has them too, and to read them after the file was made shorter raises SIGBUS. Empty: at the
  /// end of the file, for a file of a host or of a file system that is not read in place (docs/files.md), and where the
  /// kernel maps no more. Makes some system calls.
  [[nodiscard]] std::span<const std::byte> view(std::uint64_t offset, std::size_t length) noexcept;

  /// For the calls from now on that do not say a path.
  void set_path(Path path) noexcept;
  [[nodiscard]] Path path() const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Opens. `flags`: an access mode of open(2), O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_SYNC, O_DSYNC, O_NOFOLLOW,
/// O_DIRECTORY; O_CLOEXEC always, O_LARGEFILE and O_NOCTTY are understood. `mode`: for O_CREAT, less the umask. Throws
/// Error: what open(2) says, and EINVAL for other flags and for a name that makes no sense; for a host also as
/// wherry::connect does.
File open(std::string_view name, int flags, unsigned mode = 0666, const Options& options = {});
/// Of a name; follows symbolic links. Throws Error.
Status stat(std::string_view name, const Options& options = {});
/// Removes a file's name. Throws Error.
void remove(std::string_view name, const Options& options = {});

}  // namespace wherry::files
