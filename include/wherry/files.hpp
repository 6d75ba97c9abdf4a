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

/// Files of this machine and of hosts (docs/files.md). The name of a file is one of
///   - a path of this machine, `/data/x`: the process opens it itself;
///   - `wherry://NODE:PORT/path`, relative to the directory that the `wherry serve` at that address serves.
///
/// A file of this machine that is read repeatedly is mapped. Reads then copy from the kernel's page cache, without a
/// system call. A read returns the same bytes as the kernel's own call at that moment, however the file was changed.
/// There is one exception, after a file was made shorter. For at most 10 ms a read of the page in which the file now
/// ends may return zeros behind the end. It does not apply to truncations by this interface, or to those that
/// docs/files.md lists.
///
/// The kernel that has the file makes each change before the call returns.
namespace wherry::files {

struct Options {
  /// The path of calls. Empty: WHERRY_FILE_PATH, or `auto` if that is not set; a file that does not have that path uses
  /// `kernel` or `host`. `open` refuses a path that is given here and that the file does not have: EOPNOTSUPP.
  std::optional<Path> path{};
  /// How long a call waits for a host's server that is gone; then it fails with EIO. The first call for a host waits
  /// for a server that does not listen yet, for at most WHERRY_CONNECT_TIMEOUT; then it fails with ECONNREFUSED.
  std::chrono::milliseconds timeout{60'000};
};

struct Status {
  std::uint64_t device = 0;  ///< for a host with another kernel: a number that no device of another host has
  std::uint64_t inode = 0;
  std::uint64_t size = 0;    ///< bytes
  std::uint64_t blocks = 0;  ///< of 512 bytes, allocated
  std::uint32_t mode = 0;    ///< type and permissions, as st_mode
  std::uint32_t links = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::int64_t accessed = 0;  ///< ns since 1970, as the next three
  std::int64_t modified = 0;
  std::int64_t changed = 0;
  std::int64_t born = 0;  ///< 0: the file system does not say
};

/// An open file. It has no offset: each call has one.
///
/// Threads: any number at once. Calls on files of one host may wait for each other. Closing, moving and destroying: one
/// thread, while no other uses the file.
///
/// Blocking: a call blocks as long as the kernel's own call, or as the host. If a host's server is killed and
/// restarted, the next call reconnects and is repeated (docs/files.md lists what can then be EIO or ESTALE). After
/// Options::timeout the call fails with EIO.
///
/// Signals: the first file that is mapped installs handlers of SIGBUS and SIGSEGV. They pass every fault that no copy
/// of this library raised to the earlier handlers. A program must install its own handlers before; handlers installed
/// later end reading in place within 10 ms. A copy meets a fault if the file is made shorter at that moment, if its
/// disk fails, or if the buffer is invalid (EFAULT). In a thread that blocks one of the two signals, reads use the
/// kernel's calls. Such a thread must block the signal at least 10 ms before it reads, or use Path::kernel.
///
/// POSIX locks (fcntl): this process may lose a lock that it holds on the same file by a descriptor of its own. That
/// can happen at any call on a file of a host under the same kernel, and when that file is closed, because descriptors
/// of it are taken and closed.
///
/// Errors: Result::error is that of the kernel's call; also EBADF on a closed or moved-from file, and for an access
/// that the file was not opened for; EOPNOTSUPP for a path that the file does not have. Result::bytes were moved before
/// the error. A write that finds no space or quota returns that error itself.
///
/// Fork: a file of this machine belongs to the child as well. A file of a host belongs to the parent: every call of the
/// child fails with EBADF, and the child must open the file again. exec closes all files.
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
  /// Frees the file. Earlier writes stay, and their errors were returned by the calls that made them. Only one error
  /// can be reported here: EIO, if a host was restarted and lost writes that were not synced, and no call has reported
  /// it.
  Result close() noexcept;

  /// Reads at an offset. A short read means the end of the file, or an error after the bytes. Result::at_end at the
  /// end, where no byte follows, so that `while (const Result got = file.pread(...))` stops there. `path` applies to
  /// this call only.
  [[nodiscard]] Result pread(std::span<std::byte> to, std::uint64_t offset) noexcept;
  [[nodiscard]] Result pread(std::span<std::byte> to, std::uint64_t offset, Path path) noexcept;
  [[nodiscard]] Result preadv(std::span<const iovec> to, std::uint64_t offset) noexcept;
  [[nodiscard]] Result preadv(std::span<const iovec> to, std::uint64_t offset, Path path) noexcept;

  /// Writes at an offset. A short write comes with an error. EINVAL on a file opened with O_APPEND.
  [[nodiscard]] Result pwrite(std::span<const std::byte> from, std::uint64_t offset) noexcept;
  [[nodiscard]] Result pwrite(std::span<const std::byte> from, std::uint64_t offset, Path path) noexcept;
  [[nodiscard]] Result pwritev(std::span<const iovec> from, std::uint64_t offset) noexcept;
  [[nodiscard]] Result pwritev(std::span<const iovec> from, std::uint64_t offset, Path path) noexcept;

  /// Appends to a file opened with O_APPEND (else EINVAL). Up to 16 MiB stay in one piece, even if other programs
  /// append at the same time.
  [[nodiscard]] Result append(std::span<const std::byte> from) noexcept;

  /// After success, all earlier writes are durable at the file's machine. `data_only`: as fdatasync.
  [[nodiscard]] Result sync(bool data_only = false) noexcept;
  [[nodiscard]] Result stat(Status& status) noexcept;
  [[nodiscard]] Result set_size(std::uint64_t size) noexcept;

  /// Maps bytes of a file of this machine from the kernel's page cache: `length` bytes, or up to the end of the file.
  /// The mapping stays until the file is closed and behaves as one of mmap(2), whatever the path. Later changes are
  /// visible, and a forked child has the mapping too. A read behind the end of a file that was made shorter raises
  /// SIGBUS. Empty at the end of the file, for a file of a host or of a file system that is not read in place
  /// (docs/files.md), and if the kernel permits no more mappings. Makes a few system calls.
  [[nodiscard]] std::span<const std::byte> view(std::uint64_t offset, std::size_t length) noexcept;

  /// Sets the path of later calls that have no `path` argument.
  void set_path(Path path) noexcept;
  [[nodiscard]] Path path() const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Opens a file. `flags`: an access mode of open(2), O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_SYNC, O_DSYNC, O_NOFOLLOW,
/// O_DIRECTORY. O_CLOEXEC is always set; O_LARGEFILE and O_NOCTTY are accepted. `mode`: for O_CREAT, less the umask.
/// Throws Error: as open(2); EINVAL also for other flags and for an invalid name. For a host also as wherry::connect.
File open(std::string_view name, int flags, unsigned mode = 0666, const Options& options = {});
/// The status of a name; follows symbolic links. Throws Error.
Status stat(std::string_view name, const Options& options = {});
/// Removes a file's name. Throws Error.
void remove(std::string_view name, const Options& options = {});

}  // namespace wherry::files
