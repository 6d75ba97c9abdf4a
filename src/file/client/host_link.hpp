// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cerrno>
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
#include <utility>
#include <vector>

#include "file/client/host_connection.hpp"
#include "file/client/lent_files.hpp"
#include "file/wire/fault_point.hpp"
#include "file/wire/held_locks.hpp"
#include "file/wire/hello.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

struct HostOptions {
  std::string address;  ///< of the `wherry serve`
  /// How long a call waits for a server that is gone or closes its connections; then it fails with EIO.
  std::chrono::milliseconds timeout{60'000};
  std::size_t ring_bytes = 0;  ///< as StreamOptions::ring_bytes
  bool borrows = true;         ///< moves data by the server's own descriptors where possible (LentFile)
  bool waits = true;           ///< the constructor waits for a listener, for at most WHERRY_CONNECT_TIMEOUT
  /// Returns a faster connection to the server, or the stream. Empty: always the stream.
  std::function<std::unique_ptr<HostConnection>(std::unique_ptr<StreamConnection>)> shorten{};
  /// What the server said to an earlier process that this one replaces. Then the first call connects, as after a broken
  /// connection. Empty: the constructor connects.
  std::optional<layout::FileHello> greeted{};
  ClientProcess process{};
  AtFaultPoint at{};  ///< for tests
};

/// One boot of the host, as an open file saw it. A process leaves this to the process that replaces it.
struct HostBoot {
  using Note = std::function<void(const HostBoot&)>;
  BootId boot{};      ///< the boot during which the file was last opened
  bool lost = false;  ///< data written during the boot before is lost, and no call has reported it yet

  bool operator==(const HostBoot&) const = default;
};

/// A connection to a host's server that is made again when it breaks, and the open files, which are then reopened.
/// Shared by a Host and its parts. Each of their calls holds `mutex` from the first access to a file to the last.
/// `exchange` releases the mutex while it waits for a server.
class HostLink {
 public:
  using Handle = std::uint64_t;
  using Clock = std::chrono::steady_clock;
  /// How often calls try to connect after one has waited for the whole timeout.
  static constexpr std::chrono::milliseconds kTryAgain{200};

  struct File {
    std::string name;
    std::uint32_t flags = 0;   ///< to reopen it
    Handle own = 0;            ///< this host's handle
    std::uint64_t handle = 0;  ///< the server's handle
    layout::FileStatus status{};
    std::uint64_t end = 0;              ///< last known, for appends
    bool unflushed = false;             ///< written to through the server since the last flush
    bool has_write_tickets = false;     ///< other processes may write to it at any time, and do not tell
    bool lost = false;                  ///< unflushed data is lost: the host rebooted; reported once
    BootId boot{};                      ///< the host's boot when the file was last opened
    HostBoot::Note note_boot{};         ///< may be empty
    bool stale = false;                 ///< the name leads to another file now, or to none
    bool closed = false;                ///< closed while another thread's call on it waited for the server
    std::uint64_t lent_as = 0;          ///< 1 + the number of the server's descriptor; 0: not lent, or refused
    bool guarded = false;               ///< has had a lock owner: never lent again
    std::shared_ptr<LentFile> kept{};   ///< an earlier process's descriptor, for use if no name leads to the file
    std::shared_ptr<HeldLocks> held{};  ///< of a lock owner
    std::shared_ptr<File> locked{};     ///< of a lock owner: the locked file
  };
  /// Whether data written to the file was lost. Returns true once per loss.
  static bool take_loss(File& file);
  /// A rename, and its effect on the names of open files.
  struct Renaming {
    Renaming(std::string_view old, std::string_view now, bool both) : from(old), to(now), exchanged(both) {}
    void apply(std::string& name) const;
    bool operator==(const Renaming&) const = default;

    std::string from;
    std::string to;
    bool exchanged;
  };
  /// A request with its names and data.
  struct Asked {
    layout::FileRequest request{};
    std::string_view name{};
    std::string_view second{};
    std::span<const iovec> data{};
    std::uint64_t data_bytes = 0;
    File* target = nullptr;  ///< of a copy; `copy` is then sent as `second`
    layout::FileCopy copy{};
    bool once = false;  ///< does not connect again: ECONNRESET
  };

  /// Connects. Throws Error.
  explicit HostLink(HostOptions options);
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;
  ~HostLink() = default;

  [[nodiscard]] bool read_only() const { return read_only_; }
  /// Whether this process can take the server's descriptors, as far as is known. Never waits.
  [[nodiscard]] bool lends() const { return lends_.load(std::memory_order_relaxed); }
  [[nodiscard]] LentFiles& lent() { return lent_; }
  [[nodiscard]] std::mutex& mutex() const { return mutex_; }
  /// Announces a rename that another link is about to make, or that an earlier process may have made. Until it is
  /// settled, a file with the old name is looked for under both names when it is reopened. Never waits.
  void announce_rename(Renaming renaming);
  /// Ends an announced rename: it was made, or will not be. If it was made, this link's open files are renamed: now if
  /// the mutex is free, otherwise before a name is next added or used. Never waits.
  void settle_rename(const Renaming& renaming, bool is_made);

  // The functions below require the mutex.

  [[nodiscard]] const HostOptions& options() const { return options_; }
  [[nodiscard]] BootId boot() const { return boot_id_of(server_); }
  /// What the server said at the last connection.
  [[nodiscard]] const layout::FileHello& server() const { return server_; }
  /// Null: not connected.
  [[nodiscard]] HostConnection* connection() const { return connection_.get(); }
  /// Gives up lent descriptors for good: the kernel refuses them.
  void refuse_lent();
  [[nodiscard]] std::shared_ptr<File> find(Handle handle) const;
  /// Returns its handle.
  Handle add(std::shared_ptr<File> file);
  /// As `add`, for a file that an earlier process had open. It is opened once a server is connected.
  Handle resume(std::shared_ptr<File> file);
  void erase(const std::shared_ptr<File>& file);
  /// Call it before a name is added or used, so that a new file with an old name is not renamed.
  void apply_noted_renames();
  /// Other names that file `name` may have by now, because of settled, announced or running renames.
  [[nodiscard]] std::vector<std::string> later_names(const std::string& name);
  /// Sends a rename, and renames open files if it succeeds.
  int rename(const Asked& asked, Renaming renaming);
  /// Sends a request and receives its answer by `receive`, which returns an errno value, or nothing if the connection
  /// broke. Then the request is sent again over a new connection, with FileRequest::repeated set.
  template <class Receive>
  int exchange(Asked asked, File* file, Receive receive);
  /// @param file  null: the call is on a name
  int call(const Asked& asked, File* file, std::span<std::byte> payload = {}, layout::FileAnswer* answer = nullptr);
  /// As above, for an answer of any length up to `most`.
  int call(const Asked& asked, File* file, std::vector<std::byte>& payload, std::size_t most);

 private:
  void note_lender();
  [[nodiscard]] std::unique_ptr<HostConnection> connect(Timeout listener_wait, Timeout timeout = {}) const;
  int reconnect(Clock::time_point deadline);
  std::unique_ptr<HostConnection> connect_after(std::chrono::milliseconds pause, Clock::time_point deadline,
                                                std::string& problem);
  bool take_over(std::unique_ptr<HostConnection> connection);
  void give_up_locks();
  void note_boot_change(File& file);
  bool reopen(File& file);
  bool adopt(File& file);
  std::optional<bool> reopen(File& file, const std::string& name);
  std::optional<layout::FileAnswer> ask_past_leases(const layout::FileRequest& request, const std::string& name,
                                                    layout::FileStatus& status);

  HostOptions options_;
  mutable std::mutex mutex_;
  std::unique_ptr<HostConnection> connection_;
  layout::FileHello server_{};
  bool read_only_ = false;
  std::atomic<bool> lends_{false};
  std::vector<std::shared_ptr<File>> files_;
  std::optional<Renaming> renaming_;
  std::uint32_t opened_ = 0;
  bool reconnecting_ = false;  ///< one call reconnects, and has released the mutex
  std::condition_variable_any reconnected_;
  bool unreachable_ = false;  ///< the last call that connected timed out
  Clock::time_point next_try_{};

  std::mutex noted_mutex_;  ///< never held while waiting for the server
  std::vector<Renaming> noted_;
  std::vector<Renaming> announced_;
  LentFiles lent_;
};

template <class Receive>
int HostLink::exchange(Asked asked, File* file, Receive receive) {
  std::optional<Clock::time_point> deadline;
  while (true) {
    if (!connection_ && asked.once) return ECONNRESET;
    if (!connection_) {
      if (!deadline) deadline = Clock::now() + options_.timeout;
      if (const int error = reconnect(*deadline); error != 0) return error;
    }
    if (file != nullptr && file->closed) return EBADF;
    if (file != nullptr && file->stale) return ESTALE;
    if (file != nullptr) asked.request.handle = file->handle;
    if (asked.target != nullptr) {
      if (asked.target->closed) return EBADF;
      if (asked.target->stale) return ESTALE;
      asked.copy.handle = asked.target->handle;
      asked.second = {reinterpret_cast<const char*>(&asked.copy), sizeof asked.copy};
    }
    if (connection_->send(asked.request, asked.name, asked.second, Buffers(asked.data), asked.data_bytes)) {
      if (const auto error = receive(*connection_)) return *error;
    }
    if (connection_->may_have_done()) asked.request.repeated = 1;
    connection_.reset();
  }
}

}  // namespace wherry::file
