// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <wherry/result.hpp>
#include <wherry/stream.hpp>

#include "file/client/host_connection.hpp"
#include "file/client/lent_file.hpp"
#include "file/wire/boot_id.hpp"
#include "file/wire/fault_point.hpp"
#include "file/wire/held_locks.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

struct HostOptions {
  std::string address;  ///< of a `wherry serve`
  /// How long a call waits for a server that is gone, or breaks off; then it fails with EIO.
  std::chrono::milliseconds timeout{60'000};
  std::size_t ring_bytes = 0;  ///< of the ring data comes by; 0: kRingBytes
  bool borrows = true;         ///< moves data by the server's own descriptors where it can (LentFile)
  bool waits = true;           ///< at first, for a server that does not listen yet: WHERRY_CONNECT_TIMEOUT at most
  /// Gives a shorter way to a server than the stream, or the stream. Empty: always the stream.
  std::function<std::unique_ptr<HostConnection>(std::unique_ptr<StreamConnection>)> shorten{};
  AtFaultPoint at{};  ///< for tests
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
    std::optional<layout::FileStatus> status{};  ///< if it was asked for, and is known
  };

  /// Connects. Throws Error.
  explicit Host(HostOptions options);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  /// Closes all files.
  ~Host() = default;

  [[nodiscard]] bool read_only() const { return read_only_; }
  /// Which run of the host's kernel this was when it was last connected to; zeros: not known.
  [[nodiscard]] BootId boot() const;

  /// Whether this process may take the server's descriptors, as far as is known. Never waits.
  [[nodiscard]] bool lends() const { return lends_.load(std::memory_order_relaxed); }

  static constexpr std::chrono::milliseconds kTryAgain{200};

  /// `flags`: of layout::kFileOpen...; `mode`: as the file is to have it, the caller's umask taken into account.
  Opened open(std::string_view name, std::uint32_t flags, std::uint32_t mode = 0);
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
  int status(std::string_view name, bool follow, layout::FileStatus& status);
  /// The status of an open file, which stays what it is but for its owner, mode, links and times until the client with
  /// this number (FileCall::await_recalls) gives the file back, or `kept_for` has passed since this call began; 0: not.
  /// EBUSY during another call. ECONNRESET if the connection breaks, and for a time from then on.
  int delegate(Handle handle, std::uint64_t client, layout::FileStatus& status, std::chrono::milliseconds& kept_for);
  int file_system(std::string_view name, layout::FileSystemStatus& status);
  int file_system(Handle handle, layout::FileSystemStatus& status);
  int set_size(Handle handle, std::uint64_t size);
  int set_size(std::string_view name, std::uint64_t size);
  int set_mode(Handle handle, std::uint32_t mode);
  int set_mode(std::string_view name, std::uint32_t mode);
  /// A user or group of layout::kFileOwnerKept stays as it is.
  int set_owner(Handle handle, std::uint32_t user, std::uint32_t group);
  int set_owner(std::string_view name, bool follow, std::uint32_t user, std::uint32_t group);
  int set_times(Handle handle, const layout::FileTimes& times);
  int set_times(std::string_view name, bool follow, const layout::FileTimes& times);
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

  /// Makes an owner of locks on an open file; `flags`: of layout::kFileLock... Its handle is for the three calls below
  /// and `close`. `held` is kept up to date, and is of this owner alone.
  ///
  /// Locks end with the connection. If it breaks while locks are held, they are lost: ESTALE is the answer of all later
  /// calls by this handle and by the file's. Without any held only this handle is ESTALE. From now on the file's data
  /// goes through the server, so that none is written after a lock that is lost.
  Opened open_locks(Handle handle, std::uint32_t flags, std::shared_ptr<HeldLocks> held);
  /// Never waits: EAGAIN where another owner is in the way.
  int set_lock(Handle locks, std::uint32_t flags, const layout::FileLock& lock);
  /// What is in the way of a lock, if not this owner's: of type `none` if nothing is. Also of a file's own handle.
  int get_lock(Handle handle, layout::FileLock& lock);

  int make_directory(std::string_view name, std::uint32_t mode);
  int make_node(std::string_view name, layout::FileNode type, std::uint32_t mode);
  int remove(std::string_view name, bool directory = false);
  /// `flags`: of layout::kFileRename...
  int rename(std::string_view from, std::string_view to, std::uint32_t flags = 0);
  /// After the same rename by another Host of this process: open files are found under their new names if the server is
  /// started again. Does not block.
  void note_rename(std::string_view from, std::string_view to, std::uint32_t flags);
  int link(std::string_view from, std::string_view to);
  int symlink(std::string_view name, std::string_view target);
  int read_link(std::string_view name, std::string& target);

  /// What a call asks about: an open file, or a name, whose last symbolic link is not followed.
  struct Target {
    Handle handle = 0;  ///< 0: the name
    std::string_view name{};
  };
  /// Extended attributes of the namespace layout::kFileXattrNamespace; others are EOPNOTSUPP.
  int get_xattr(const Target& target, std::string_view attribute, std::vector<std::byte>& value);
  /// `names`: each with a zero behind it.
  int list_xattrs(const Target& target, std::vector<std::byte>& names);
  /// `flags`: of layout::kFileXattr... E2BIG: the value is longer than layout::kFileMaxXattr.
  int set_xattr(const Target& target, std::string_view attribute, std::span<const std::byte> value,
                std::uint32_t flags = 0);
  int remove_xattr(const Target& target, std::string_view attribute);

 private:
  struct File {
    std::string name;
    std::uint32_t flags = 0;   ///< to open it again
    Handle own = 0;            ///< of this host
    std::uint64_t handle = 0;  ///< the server's
    layout::FileStatus status{};
    std::uint64_t end = 0;              ///< as last heard, for appends
    bool unflushed = false;             ///< written to through the server since the last flush
    bool lost = false;                  ///< the host started again meanwhile: to be told once
    bool stale = false;                 ///< what has its name is another file now, or none
    bool closed = false;                ///< while another thread's call on it waits for the server
    std::uint64_t lent_as = 0;          ///< 1 and the number of the server's descriptor; 0: not lent, or refused
    bool guarded = false;               ///< an owner of locks was made of it: never lent again
    std::shared_ptr<HeldLocks> held{};  ///< of an owner of locks
    std::shared_ptr<File> locked{};     ///< the file that it has locks on
  };
  struct Lent {
    Handle handle = 0;
    std::shared_ptr<LentFile> file{};
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
    File* target = nullptr;  ///< of a copy; `copy` is then sent as `second`
    layout::FileCopy copy{};
    bool once = false;  ///< not worth a new connection: ECONNRESET
  };
  using Clock = std::chrono::steady_clock;

  Opened open(Asked asked, File* other, std::string_view name, std::uint32_t flags);
  void apply_noted_renames();
  int reconnect(Clock::time_point deadline);
  std::unique_ptr<HostConnection> connect(Timeout listener_wait, Timeout timeout = {}) const;
  std::unique_ptr<HostConnection> connect_after(std::chrono::milliseconds pause, Clock::time_point deadline,
                                                std::string& problem);
  bool take_over(std::unique_ptr<HostConnection> connection);
  void give_up_locks();
  bool reopen(File& file);
  std::optional<bool> reopen(File& file, const std::string& name);
  [[nodiscard]] std::shared_ptr<File> find(Handle handle) const;
  template <class Receive>
  int exchange(Asked asked, File* file, Receive receive);
  int call(const Asked& asked, File* file, std::span<std::byte> payload = {}, layout::FileAnswer* answer = nullptr);
  int call(const Asked& asked, File* file, std::vector<std::byte>& payload, std::size_t most);
  int list(Handle handle, const layout::FileRequest& request, std::vector<Entry>& entries);
  int call_xattr(layout::FileCall call, const Target& target, Asked asked, std::vector<std::byte>& payload);
  int call(layout::FileCall call, std::string_view name, std::string_view second = {}, std::uint32_t flags = 0,
           std::uint32_t mode = 0, std::uint64_t offset = 0, std::span<std::byte> payload = {});
  template <class Then>
  int call(layout::FileCall call, Handle handle, std::uint32_t flags, std::uint64_t offset, std::uint64_t length,
           std::span<std::byte> payload, Then then);
  [[nodiscard]] Result put(Handle handle, layout::FileCall call, std::uint64_t offset, std::span<const iovec> from);
  int told_of_loss(File& file);
  [[nodiscard]] std::shared_ptr<LentFile> lent(Handle handle) const;
  void set_lent(Handle handle, std::shared_ptr<LentFile> file);
  std::shared_ptr<LentFile> borrow(File& file);
  Handle add(std::shared_ptr<File> file);

  HostOptions options_;
  mutable std::mutex mutex_;
  std::unique_ptr<HostConnection> connection_;
  layout::FileHello server_{};
  bool read_only_ = false;
  std::atomic<bool> lends_{false};
  std::vector<std::shared_ptr<File>> files_;
  std::optional<Renaming> renaming_;
  std::uint32_t opened_ = 0;
  bool reconnecting_ = false;  ///< one call does, with the lock open
  std::condition_variable_any reconnected_;
  Clock::time_point delegates_from_{};  ///< the connection broke: its client hears of it, too, and asks no more
  bool unreachable_ = false;            ///< the last call that connected has timed out
  Clock::time_point next_try_{};

  std::mutex noted_mutex_;  ///< never held during a wait for the server
  std::vector<Renaming> noted_;

  mutable std::mutex lent_mutex_;  ///< never held during a wait for the server
  std::vector<Lent> lent_;         ///< as files_
};

}  // namespace wherry::file
