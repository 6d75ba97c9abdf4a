// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <wherry/result.hpp>
#include <wherry/stream.hpp>

#include "file/fault_point.hpp"
#include "file/host_connection.hpp"
#include "layout/file_wire.hpp"

namespace wherry::file {

struct HostOptions {
  std::string address;  ///< of a `wherry serve`
  /// How long a call waits for a server that is gone, or breaks off; then it fails with EIO.
  std::chrono::milliseconds patience{60'000};
  std::size_t ring_bytes = 0;  ///< of the ring data comes by; 0: WHERRY_RING
  AtFaultPoint at{};           ///< for tests
};

/// A host's files, served by `wherry serve`. Names are paths relative to the directory that it serves, "." is that
/// directory.
///
/// Functions that return int return 0 or an errno value; those that move data a Result, whose bytes are what was moved
/// before an error: a short read is the end of the file, as with pread.
///
/// A server that is killed and started again is connected to again by the call that notices, which opens all files
/// again and repeats its request. A file is the same if it is found under its name with the same inode and time of
/// birth; one that is not answers ESTALE from then on. Requests that make a name, and prove to be undecidable (the name
/// is there: made by the first attempt, or by another program), return EIO; so does an append whose end others have
/// moved. If the host was started again, files with data that was not flushed answer EIO to the next write, flush or
/// close, once.
///
/// Threads: any; calls go one after the other. Block as long as the server does. Fork: as a stream, a host stays the
/// parent's; a child must not use it, and may destroy its copy.
class Host {
 public:
  using Handle = std::uint64_t;
  struct Opened {
    int error = 0;
    Handle handle = 0;
    layout::FileStatus status{};
  };
  struct Entry {
    std::uint64_t inode;
    std::uint64_t cookie;  ///< to go on behind this entry
    std::uint32_t type;    ///< as DT_REG and so on
    std::string name;
  };

  /// Connects. Throws Error.
  explicit Host(HostOptions options);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  /// Closes all files.
  ~Host() = default;

  [[nodiscard]] bool read_only() const { return read_only_; }

  /// `flags`: of layout::kFileOpen...; `mode`: as the file is to have it, the caller's umask taken into account.
  Opened open(std::string_view name, std::uint32_t flags, std::uint32_t mode = 0);
  int close(Handle handle);
  [[nodiscard]] Result read(Handle handle, std::uint64_t offset, std::span<const iovec> into);
  [[nodiscard]] Result write(Handle handle, std::uint64_t offset, std::span<const iovec> from);
  /// At the end of a file that was opened for it. Atomic up to layout::kFileMaxAppend.
  [[nodiscard]] Result append(Handle handle, std::span<const iovec> from);
  [[nodiscard]] Result read(Handle handle, std::uint64_t offset, std::span<std::byte> into);
  [[nodiscard]] Result write(Handle handle, std::uint64_t offset, std::span<const std::byte> from);
  [[nodiscard]] Result append(Handle handle, std::span<const std::byte> from);
  /// Returns 0 once all that was written is durable at the host.
  int flush(Handle handle, bool data_only = false);

  int status(Handle handle, layout::FileStatus& status);
  int status(std::string_view name, bool follow, layout::FileStatus& status);
  int file_system(std::string_view name, layout::FileSystemStatus& status);
  int set_size(Handle handle, std::uint64_t size);
  int set_size(std::string_view name, std::uint64_t size);
  int set_mode(std::string_view name, std::uint32_t mode);
  int set_times(std::string_view name, bool follow, const layout::FileTimes& times);
  /// `flags`: of layout::kFileAllocate...
  int allocate(Handle handle, std::uint32_t flags, std::uint64_t offset, std::uint64_t length);
  /// The next data or hole from `offset` on.
  int seek(Handle handle, std::uint64_t offset, layout::FileSeek what, std::uint64_t& found);
  /// Some entries behind `cookie`, 0 at first; none at the end.
  int list(Handle handle, std::uint64_t cookie, std::vector<Entry>& entries);

  int make_directory(std::string_view name, std::uint32_t mode);
  int remove(std::string_view name, bool directory = false);
  /// `flags`: of layout::kFileRename...
  int rename(std::string_view from, std::string_view to, std::uint32_t flags = 0);
  int link(std::string_view from, std::string_view to);
  int symlink(std::string_view name, std::string_view target);
  int read_link(std::string_view name, std::string& target);

 private:
  struct File {
    std::string name;
    std::uint32_t flags = 0;   ///< to open it again
    std::uint64_t handle = 0;  ///< the server's
    layout::FileStatus status{};
    std::uint64_t end = 0;     ///< as last heard, for appends
    std::uint32_t number = 0;  ///< tells it from others that had its place
    bool unflushed = false;    ///< written to since the last flush
    bool lost = false;         ///< the host started again meanwhile: to be told once
    bool stale = false;        ///< what has its name is another file now, or none
  };
  /// A rename that is not answered yet: where it leads what is open.
  struct Renaming {
    Renaming(std::string_view old, std::string_view now, bool both) : from(old), to(now), exchanged(both) {}
    void apply(std::string& name) const;

    std::string from;
    std::string to;
    bool exchanged;
  };
  /// A request with all that belongs to it.
  struct Asked {
    layout::FileRequest request{};
    std::string_view name{};
    std::string_view second{};
    std::span<const iovec> data{};
    std::uint64_t data_bytes = 0;
  };
  using Clock = std::chrono::steady_clock;

  void connect();
  int reconnect(Clock::time_point deadline);
  bool reopen(File& file);
  std::optional<bool> reopen(File& file, const std::string& name);
  [[nodiscard]] File* find(Handle handle);
  template <class Receive>
  int exchange(Asked asked, File* file, Receive receive);
  int call(const Asked& asked, File* file, std::span<std::byte> payload = {}, layout::FileAnswer* answer = nullptr);
  int call(layout::FileCall call, std::string_view name, std::string_view second = {}, std::uint32_t flags = 0,
           std::uint32_t mode = 0, std::uint64_t offset = 0);
  [[nodiscard]] Result put(Handle handle, layout::FileCall call, std::uint64_t offset, std::span<const iovec> from);
  int told_of_loss(File& file);

  HostOptions options_;
  std::mutex mutex_;
  std::optional<HostConnection> connection_;
  layout::FileHello server_{};
  bool read_only_ = false;
  std::vector<std::optional<File>> files_;
  std::optional<Renaming> renaming_;
  std::uint32_t opened_ = 0;
};

}  // namespace wherry::file
