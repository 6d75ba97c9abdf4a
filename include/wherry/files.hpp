// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <wherry/error.hpp>
#include <wherry/result.hpp>

/// Files, read through the cache that the processes of a card share (docs/files.md). A file's name is
///   - a path of this machine, `/data/x`: the process opens it itself; or
///   - `wherry://NODE:PORT/path`, relative to the directory that the `wherry serve` at that address serves.
///
/// Nothing has to be started for paths: where no card runs, the first file opened starts one if the program `wherry` is
/// found (in the `bin` beside the `lib` of the library, or in PATH; a set-user-ID program starts none). Without one, or
/// where /dev/shm cannot be written to, everything works without a cache.
///
/// Every change is made by the kernel that has the file before the call returns; the cache has clean copies only.
/// Between the processes of a card a read gives what the last completed change left, whatever their paths and names for
/// the file; a process that opened its files before there was a card finds it within 10 ms. What others change is seen
/// at the latest when the file is opened, or 100 ms later.
namespace wherry::files {

/// The way that a call goes.
enum class Path : std::uint8_t {
  automatic,  ///< the cache where it has the bytes; else what was measured to be faster
  local,      ///< the kernel's own call; EOPNOTSUPP for a file of a host
  comp,       ///< the calling thread by way of the cache, which every read fills, ahead of a reader in order
  os,         ///< reads: the card's process; where it serves no files, and writes, as `comp`
  host,       ///< the host's server, straight into the caller's buffer; EOPNOTSUPP for a path of this machine
};
inline constexpr std::size_t kPaths = 5;

/// Why a read went the way it went.
enum class Reason : std::uint8_t {
  asked,     ///< the caller or WHERRY_FILE_PATH said so
  hit,       ///< all of it was in the cache
  cheaper,   ///< of the ways measured this is the faster one
  again,     ///< some of it was wanted before, and is cached from now on
  explored,  ///< to measure a way that was not taken lately: at most one call in 100
  uncached,  ///< there is no cache, or the file cannot be cached now
};
inline constexpr std::size_t kReasons = 6;

struct Options {
  /// Empty: WHERRY_FILE_PATH (kernel, cache and card there are `local`, `comp` and `os`), `local` if that is not set;
  /// of `local` and `host` there the one that the file has. One that the file does not have is refused by `open`:
  /// EOPNOTSUPP. For a file of this machine, any path but `local` can release the POSIX locks (fcntl) that this process
  /// holds on it.
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

/// Bytes of a file where they lie in the cache, without a copy. What was read there counts only if `unchanged` is true
/// *afterwards*; then it was the file's content when the view was made. It pins nothing: a change, or another block
/// that needs the place, may overwrite the bytes at any time. Reading them is always safe: what is mapped stays mapped
/// as long as the process. Copied freely; may outlive its file. From any thread.
class View {
 public:
  View() noexcept = default;

  /// Empty if nothing of what was asked for is in the cache.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] explicit operator bool() const noexcept { return !bytes_.empty(); }
  /// Whether all that was read from `bytes` before this call was the file's. No system call. False for an empty view.
  [[nodiscard]] bool unchanged() const noexcept;

 private:
  friend class File;
  using Word = std::atomic<std::uint64_t>;

  std::span<const std::byte> bytes_;
  const Word* block_ = nullptr;  // the state of the block, and what it was; likewise of the file
  const Word* file_ = nullptr;
  std::uint64_t block_state_ = 0;
  std::uint64_t file_state_ = 0;
};

/// An open file. It has no offset: each call says where.
///
/// Threads: any number, at once. Calls on files of one host may wait for each other. Moving and destroying: one thread,
/// while no other uses it.
///
/// Blocking: a call blocks as long as the kernel's own, or as the host. A host's server that is killed and started
/// again is found again by the call that notices, and the call is repeated (docs/files.md says what can then be EIO or
/// ESTALE); after Options::timeout it is EIO. A read that the cache has makes no system call.
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

  /// Bytes in the cache, from `offset` to the end of their block of 16 KiB at most; brings the block in if the cache
  /// takes it. Empty if it does not, at the end of the file, and where nothing is cached.
  [[nodiscard]] View view(std::uint64_t offset, std::size_t length) noexcept;

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

/// How often this process's reads went which way, and why. Approximate when threads count at the same moment.
struct Choices {
  std::array<std::array<std::uint64_t, kReasons>, kPaths> calls{};
  [[nodiscard]] std::uint64_t of(Path path, Reason reason) const {
    return calls[static_cast<std::size_t>(path)][static_cast<std::size_t>(reason)];
  }
};
Choices choices() noexcept;

}  // namespace wherry::files
