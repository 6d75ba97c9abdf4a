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

/// The client of a host's file server (`wherry serve`): open files here; names, locks, extended attributes, tickets and
/// held-back writes in `names`, `locks`, `xattrs`, `tickets` and `writes`.
///
/// Functions that return int return 0 or an errno value. Functions that move data return a Result, whose bytes are
/// those moved before an error. A short read is the end of the file, as with pread.
///
/// Reconnection: the first call that notices a restarted server connects again, reopens all files and repeats its
/// request. A file counts as the same if its name leads to the same inode with the same time of birth. Otherwise its
/// handle returns ESTALE from then on. An append returns EIO if other programs have moved the end of the file. After a
/// reboot of the host, files with unflushed data return EIO once, from the next write, flush or close.
///
/// Lent descriptors (LentFile): under the server's kernel, this process takes the server's descriptor of a file at the
/// first call on its data, status, mode, owner or times. These calls then cost as much as the kernel's own, and work
/// also while the server is dead. Another kernel, hardening or descriptor limits can prevent that; the calls then go
/// through the server. The descriptor is given up if a restarted server has another file or none under the name, or
/// refuses it.
///
/// Timeouts: after a call has waited for the whole of HostOptions::timeout, later calls fail with EIO at once. Every
/// `kTryAgain` one of them tries to connect. Once the server answers, calls wait for it again.
///
/// Threads: any. Calls run one at a time, except those on a lent descriptor. `close` of a flushed file does not wait
/// for a reconnection. Calls block as long as the server does. Fork: as with a stream, the host belongs to the parent.
/// A child must not use its copy, and may destroy it.
class Host {
 public:
  using Handle = HostLink::Handle;
  struct Opened {
    int error = 0;
    Handle handle = 0;
    bool is_stable = false;  ///< with kFileOpenTellStable: layout::kFileStable
    layout::FileStatus status{};
  };
  struct Entry {
    std::uint64_t inode;
    std::uint64_t cookie;  ///< continues a list after this entry
    std::uint32_t type;    ///< as DT_REG etc.
    std::string name;
    std::optional<layout::FileStatus> status{};  ///< if requested and known
  };

  /// Connects. Throws Error.
  explicit Host(HostOptions options) : link_(std::move(options)) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  /// Closes all files.
  ~Host() = default;

  [[nodiscard]] bool read_only() const { return link_.read_only(); }
  /// Identifies the host's boot at the last connection; zeros: unknown.
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

  /// `flags`: of layout::kFileOpen...; `mode`: with the caller's umask applied.
  Opened open(std::string_view name, std::uint32_t flags, std::uint32_t mode = 0);
  /// Takes over a file that an earlier process had open. Never waits for a connection: the file is opened once the
  /// server is connected. It returns ESTALE if its name leads to another file by then.
  /// @param same  identifies the file
  /// @param lost  locks on the file were lost: its handle returns ESTALE
  /// @param kept  the earlier process's descriptor, used if no name leads to the file any more; may be invalid
  /// @param seen  as last reported to `note_boots`; empty: the boot of HostOptions::greeted
  Handle resume(std::string_view name, std::uint32_t flags, const layout::FileStatus& same, bool lost, UniqueFd kept,
                const std::optional<HostBoot>& seen = {});
  /// Calls `note` now and after each change. `note` must not call this host.
  void note_boots(Handle handle, HostBoot::Note note);
  /// Opens an open file again, also if its name is gone. `flags` must not create, truncate, or ask for a directory.
  Opened open_again(Handle handle, std::uint32_t flags);
  /// Does not connect for a file without unflushed data: a dead server has closed it already.
  int close(Handle handle);
  [[nodiscard]] Result read(Handle handle, std::uint64_t offset, std::span<const iovec> into);
  [[nodiscard]] Result write(Handle handle, std::uint64_t offset, std::span<const iovec> from);
  /// Appends to a file that was opened with kFileOpenAppend. Atomic up to layout::kFileMaxAppend.
  [[nodiscard]] Result append(Handle handle, std::span<const iovec> from);
  [[nodiscard]] Result read(Handle handle, std::uint64_t offset, std::span<std::byte> into);
  [[nodiscard]] Result write(Handle handle, std::uint64_t offset, std::span<const std::byte> from);
  [[nodiscard]] Result append(Handle handle, std::span<const std::byte> from);
  /// Repeats an append that an earlier process began when the file ended at `end`, and may have done in full or in
  /// part. EIO: other programs have appended too, so its outcome is unknown.
  [[nodiscard]] Result append_again(Handle handle, std::uint64_t end, std::span<const std::byte> from);
  /// The current end of the file; the last known one if the server cannot be asked.
  [[nodiscard]] std::uint64_t end(Handle handle);
  /// Copies from one file to the other, at the server. If fewer bytes than `length` are copied, the source file ends
  /// there, or the next call returns the error. EINVAL: the same file with overlapping ranges. EXDEV: the server's
  /// kernel cannot copy between the two file systems.
  [[nodiscard]] Result copy(Handle from, std::uint64_t offset, Handle to, std::uint64_t to_offset,
                            std::uint64_t length);
  /// Returns 0 once all written data is durable at the host.
  int flush(Handle handle, bool data_only = false);
  /// Returns EIO once if unflushed data may be lost because the host was rebooted. Asks the server only if the file has
  /// unflushed data.
  int check_loss(Handle handle);

  /// The server's descriptor of an open file, or null.
  [[nodiscard]] std::shared_ptr<LentFile> lend(Handle handle);

  int status(Handle handle, layout::FileStatus& status);
  /// Delegates an open file to `client`, the number from FileCall::await_recalls, and returns its status. Size and data
  /// do not change until that client gives the file back, or `kept_for` has passed since this call began. Owner, mode,
  /// links and times may change. `kept_for` 0: not delegated. EBUSY: another call is in progress. ECONNRESET: the
  /// connection broke, now or less than `kTryAgain` ago.
  int delegate(Handle handle, std::uint64_t client, layout::FileStatus& status, std::chrono::milliseconds& kept_for);
  int file_system(Handle handle, layout::FileSystemStatus& status);
  int set_size(Handle handle, std::uint64_t size);
  int set_mode(Handle handle, std::uint32_t mode);
  /// layout::kFileOwnerKept leaves the user or the group unchanged.
  int set_owner(Handle handle, std::uint32_t user, std::uint32_t group);
  int set_times(Handle handle, const layout::FileTimes& times);
  /// `flags`: of layout::kFileAllocate...
  int allocate(Handle handle, std::uint32_t flags, std::uint64_t offset, std::uint64_t length);
  /// The next data or hole from `offset` on.
  int seek(Handle handle, std::uint64_t offset, layout::FileSeek what, std::uint64_t& found);
  /// Some entries after `cookie`, which is 0 at first; no entries at the end.
  int list(Handle handle, std::uint64_t cookie, std::vector<Entry>& entries);
  /// As `list`, with a status for each entry except "." and "..".
  /// @param room  bytes for all entries. An entry takes 152 bytes and its name, rounded up to 8. EINVAL: no entry fits.
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
  static int take_loss_error(File& file);
  std::shared_ptr<LentFile> borrow(File& file);

  HostLink link_;
  HostNames names_{link_};
  HostLocks locks_{link_};
  HostXattrs xattrs_{link_};
  HostTickets tickets_{link_};
  HostWrites writes_{link_};
  Clock::time_point delegates_from_{};  ///< after a broken connection: no delegation before this time
};

}  // namespace wherry::file
