// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <wherry/result.hpp>

#include "file/client/host_link.hpp"
#include "file/client/host_locks.hpp"
#include "file/client/host_names.hpp"
#include "file/client/host_tickets.hpp"
#include "file/client/host_writes.hpp"
#include "file/client/host_xattrs.hpp"
#include "file/client/lent_file.hpp"

namespace wherry::file {

/// A host's files, served by `wherry serve`: those that are open, and by `names`, `locks`, `xattrs`, `tickets` and
/// `writes` what else the server does.
///
/// Functions that return int return 0 or an errno value; those that move data a Result, whose bytes are what was moved
/// before an error: a short read is the end of the file, as with pread.
///
/// A server that is killed and started again is connected to again by the call that notices, which opens all files
/// again and repeats its request. A file is the same if it is found under its name with the same inode and time of
/// birth; one that is not answers ESTALE from then on. An append whose end others have moved returns EIO. If the host
/// was started again, files with data that was not flushed answer EIO to the next write, flush or close, once.
///
/// Under the server's own kernel, data, status, mode, owner and times of an open file go by the server's descriptor of
/// it, which this process takes at the first call that is about one of them (LentFile): as fast as the kernel's own
/// call, and whether the server lives or not. What keeps it from taking them (another kernel, hardening, descriptor
/// limits) makes them go through the server. A descriptor is given up when a server that was started again has another
/// file, or none, or refuses it.
///
/// After a call has waited for the server for the whole of HostOptions::timeout, later calls fail with EIO at once. One
/// of them tries to connect every `kTryAgain`. Once the server answers, calls wait for it again.
///
/// Threads: any; calls go one after the other, but for those by a lent descriptor, and for `close` of what was flushed,
/// which do not wait for a connection that is made again. Block as long as the server does. Fork: as a stream, a host
/// stays the parent's; a child must not use it, and may destroy its copy.
class Host {
 public:
  using Handle = HostLink::Handle;
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
    std::optional<layout::FileStatus> status{};  ///< if it was asked for, and is known
  };

  /// Connects. Throws Error.
  explicit Host(HostOptions options) : link_(std::move(options)) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  /// Closes all files.
  ~Host() = default;

  [[nodiscard]] bool read_only() const { return link_.read_only(); }
  /// Which run of the host's kernel this was when it was last connected to; zeros: not known.
  [[nodiscard]] BootId boot() const;
  /// As HostLink::server.
  [[nodiscard]] layout::FileHello server() const;
  /// As HostLink::lends.
  [[nodiscard]] bool lends() const { return link_.lends(); }
  static constexpr std::chrono::milliseconds kTryAgain = HostLink::kTryAgain;

  [[nodiscard]] HostNames& names() { return names_; }
  [[nodiscard]] HostLocks& locks() { return locks_; }
  [[nodiscard]] HostXattrs& xattrs() { return xattrs_; }
  [[nodiscard]] HostTickets& tickets() { return tickets_; }
  [[nodiscard]] HostWrites& writes() { return writes_; }

  /// `flags`: of layout::kFileOpen...; `mode`: as the file is to have it, the caller's umask taken into account.
  Opened open(std::string_view name, std::uint32_t flags, std::uint32_t mode = 0);
  /// A file that an earlier process had open, whose place this one takes. Never waits: it is opened when the server is
  /// connected, and answers ESTALE if its name leads to another one by then.
  /// @param same  tells which file it is
  /// @param lost  locks on it were: it answers ESTALE
  /// @param kept  a descriptor of it, by which it is used where no name leads to it any more; or not valid
  /// @param run  as last noted by `note_runs`; empty: the one that HostOptions::greeted tells of
  Handle resume(std::string_view name, std::uint32_t flags, const layout::FileStatus& same, bool lost, UniqueFd kept,
                const std::optional<HostRun>& run = {});
  /// Calls `note` now, and with each change; it is not to call this host.
  void note_runs(Handle handle, HostRun::Note note);
  /// An open file once more, also where its name is gone. `flags`: none that makes, cuts, or asks for a directory.
  Opened open_again(Handle handle, std::uint32_t flags);
  /// Without a server, and with nothing unflushed, there is nothing to close.
  int close(Handle handle);
  [[nodiscard]] Result read(Handle handle, std::uint64_t offset, std::span<const iovec> into);
  [[nodiscard]] Result write(Handle handle, std::uint64_t offset, std::span<const iovec> from);
  /// At the end of a file that was opened for it. Atomic up to layout::kFileMaxAppend.
  [[nodiscard]] Result append(Handle handle, std::span<const iovec> from);
  [[nodiscard]] Result read(Handle handle, std::uint64_t offset, std::span<std::byte> into);
  [[nodiscard]] Result write(Handle handle, std::uint64_t offset, std::span<const std::byte> from);
  [[nodiscard]] Result append(Handle handle, std::span<const std::byte> from);
  /// An append that an earlier process has begun when the file ended at `end`, and may have done, all or in part. EIO:
  /// it cannot be told, since others have appended.
  [[nodiscard]] Result append_again(Handle handle, std::uint64_t end, std::span<const std::byte> from);
  /// Where the file ends now; as last heard if the server cannot be asked.
  [[nodiscard]] std::uint64_t end(Handle handle);
  /// From one file to the other, at the server. Fewer bytes than `length`: the first file ends there, or the next call
  /// meets the error. EINVAL: the same file, and the ranges overlap. EXDEV: files of file systems that the server's
  /// kernel does not copy between.
  [[nodiscard]] Result copy(Handle from, std::uint64_t offset, Handle to, std::uint64_t to_offset,
                            std::uint64_t length);
  /// Returns 0 once all that was written is durable at the host.
  int flush(Handle handle, bool data_only = false);
  /// EIO, once, if data that was not flushed may be lost: the host was started again. Asks the server only where such
  /// data exists.
  int check_loss(Handle handle);

  /// The server's descriptor of an open file, or null.
  [[nodiscard]] std::shared_ptr<LentFile> lend(Handle handle);

  int status(Handle handle, layout::FileStatus& status);
  /// The status of an open file, which stays what it is but for its owner, mode, links and times until the client with
  /// this number (FileCall::await_recalls) gives the file back, or `kept_for` has passed since this call began; 0: not.
  /// EBUSY during another call. ECONNRESET if the connection breaks, and for a time from then on.
  int delegate(Handle handle, std::uint64_t client, layout::FileStatus& status, std::chrono::milliseconds& kept_for);
  int file_system(Handle handle, layout::FileSystemStatus& status);
  int set_size(Handle handle, std::uint64_t size);
  int set_mode(Handle handle, std::uint32_t mode);
  /// A user or group of layout::kFileOwnerKept stays as it is.
  int set_owner(Handle handle, std::uint32_t user, std::uint32_t group);
  int set_times(Handle handle, const layout::FileTimes& times);
  /// `flags`: of layout::kFileAllocate...
  int allocate(Handle handle, std::uint32_t flags, std::uint64_t offset, std::uint64_t length);
  /// The next data or hole from `offset` on.
  int seek(Handle handle, std::uint64_t offset, layout::FileSeek what, std::uint64_t& found);
  /// Some entries behind `cookie`, 0 at first; none at the end.
  int list(Handle handle, std::uint64_t cookie, std::vector<Entry>& entries);
  /// The same with a status for each but "." and "..".
  /// @param room  for all entries, each of which takes 152 bytes and its name, rounded up to 8; EINVAL: for not even
  /// one
  int list_with_status(Handle handle, std::uint64_t cookie, std::size_t room, std::vector<Entry>& entries);

 private:
  using File = HostLink::File;
  using Asked = HostLink::Asked;
  using Clock = HostLink::Clock;

  Opened open(Asked asked, File* other, std::string_view name, std::uint32_t flags);
  int list(Handle handle, const layout::FileRequest& request, std::vector<Entry>& entries);
  template <class Then>
  int call(layout::FileCall call, Handle handle, std::uint32_t flags, std::uint64_t offset, std::uint64_t length,
           std::span<std::byte> payload, Then then);
  [[nodiscard]] Result put(Handle handle, layout::FileCall call, std::uint64_t offset, std::span<const iovec> from);
  [[nodiscard]] Result put(File& file, Asked asked, std::span<const iovec> from);
  static int told_of_loss(File& file);
  std::shared_ptr<LentFile> borrow(File& file);

  HostLink link_;
  HostNames names_{link_};
  HostLocks locks_{link_};
  HostXattrs xattrs_{link_};
  HostTickets tickets_{link_};
  HostWrites writes_{link_};
  Clock::time_point delegates_from_{};  ///< the connection broke: its client hears of it, too, and asks no more
};

}  // namespace wherry::file
