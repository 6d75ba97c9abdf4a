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
  std::string address;  ///< of a `wherry serve`
  /// How long a call waits for a server that is gone, or breaks off; then it fails with EIO.
  std::chrono::milliseconds timeout{60'000};
  std::size_t ring_bytes = 0;  ///< of the ring data comes by; 0: kRingBytes
  bool borrows = true;         ///< moves data by the server's own descriptors where it can (LentFile)
  bool waits = true;           ///< at first, for a server that does not listen yet: WHERRY_CONNECT_TIMEOUT at most
  /// Gives a shorter way to a server than the stream, or the stream. Empty: always the stream.
  std::function<std::unique_ptr<HostConnection>(std::unique_ptr<StreamConnection>)> shorten{};
  /// What the server said to an earlier process whose place this one takes. The first call connects, as after a broken
  /// connection. Empty: the constructor connects.
  std::optional<layout::FileHello> greeted{};
  ClientProcess process{};
  AtFaultPoint at{};  ///< for tests
};

/// A run of the host's kernel, and what it means for an open file: what a process leaves of this to the next one.
struct HostRun {
  using Note = std::function<void(const HostRun&)>;
  BootId boot{};      ///< under which the file was opened last
  bool lost = false;  ///< what was written to the file under the run before is, and no call has told of that yet

  bool operator==(const HostRun&) const = default;
};

/// A way to a host's server that is made again when it breaks, and the files that are open by it, which are opened
/// again then. What a Host and its parts have in common: each of their calls holds `mutex` from the first look at a
/// file to the last, and `exchange` opens it while it waits for a server.
class HostLink {
 public:
  using Handle = std::uint64_t;
  using Clock = std::chrono::steady_clock;
  /// How often calls try to connect once a call has waited for the server for the whole timeout.
  static constexpr std::chrono::milliseconds kTryAgain{200};

  struct File {
    std::string name;
    std::uint32_t flags = 0;   ///< to open it again
    Handle own = 0;            ///< of this host
    std::uint64_t handle = 0;  ///< the server's
    layout::FileStatus status{};
    std::uint64_t end = 0;              ///< as last heard, for appends
    bool unflushed = false;             ///< written to through the server since the last flush
    bool lost = false;                  ///< the host started again meanwhile: to be told once
    BootId boot{};                      ///< of the host, when it was opened there last
    HostRun::Note note_run{};           ///< may be empty
    bool stale = false;                 ///< what has its name is another file now, or none
    bool closed = false;                ///< while another thread's call on it waits for the server
    std::uint64_t lent_as = 0;          ///< 1 and the number of the server's descriptor; 0: not lent, or refused
    bool guarded = false;               ///< an owner of locks was made of it: never lent again
    std::shared_ptr<LentFile> kept{};   ///< of an earlier process: to use the file by where no name leads to it
    std::shared_ptr<HeldLocks> held{};  ///< of an owner of locks
    std::shared_ptr<File> locked{};     ///< the file that it has locks on
  };
  /// Whether data that was written to the file is lost. That is told once.
  static bool take_loss(File& file);
  /// A rename that is not answered yet: where it leads what is open.
  struct Renaming {
    Renaming(std::string_view old, std::string_view now, bool both) : from(old), to(now), exchanged(both) {}
    void apply(std::string& name) const;
    bool operator==(const Renaming&) const = default;

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

  /// Connects. Throws Error.
  explicit HostLink(HostOptions options);
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;
  ~HostLink() = default;

  [[nodiscard]] bool read_only() const { return read_only_; }
  /// Whether this process may take the server's descriptors, as far as is known. Never waits.
  [[nodiscard]] bool lends() const { return lends_.load(std::memory_order_relaxed); }
  [[nodiscard]] LentFiles& lent() { return lent_; }
  [[nodiscard]] std::mutex& mutex() const { return mutex_; }
  /// A rename that another link is about to make, or that an earlier process may have made: what has the old name and
  /// is opened again is looked for under both, until this is settled. Never waits.
  void announce_rename(Renaming renaming);
  /// What was announced, if it was, is made or will not be. If it is made, what is open by this link is renamed once a
  /// call has its turn. Never waits.
  void settle_rename(const Renaming& renaming, bool is_made);

  // What follows is for calls that hold the mutex:

  [[nodiscard]] const HostOptions& options() const { return options_; }
  [[nodiscard]] BootId boot() const { return boot_id_of(server_); }
  /// What the server said when it was last connected to.
  [[nodiscard]] const layout::FileHello& server() const { return server_; }
  /// Null: there is none at the moment.
  [[nodiscard]] HostConnection* connection() const { return connection_.get(); }
  /// The kernel refuses descriptors of the server's.
  void refuse_lent();
  [[nodiscard]] std::shared_ptr<File> find(Handle handle) const;
  /// Returns its handle.
  Handle add(std::shared_ptr<File> file);
  /// The same of a file that an earlier process had open: it is opened when a server is connected.
  Handle resume(std::shared_ptr<File> file);
  void erase(const std::shared_ptr<File>& file);
  /// Before a name is added or used: a later file of an old name must not follow.
  void apply_noted_renames();
  /// Under which a file may be found by now that had the name before the renames that are noted or under way.
  [[nodiscard]] std::vector<std::string> later_names(const std::string& name);
  /// Asks for a rename, and renames what is open.
  int rename(const Asked& asked, Renaming renaming);
  /// Sends, and receives by `receive`, which returns an errno value, or nothing if the connection broke. If it broke,
  /// the request is sent again over a new connection, with FileRequest::repeated set.
  template <class Receive>
  int exchange(Asked asked, File* file, Receive receive);
  /// @param file  null: the call is asked of a name
  int call(const Asked& asked, File* file, std::span<std::byte> payload = {}, layout::FileAnswer* answer = nullptr);
  /// The same for an answer of any length up to `most`.
  int call(const Asked& asked, File* file, std::vector<std::byte>& payload, std::size_t most);

 private:
  void note_lender();
  [[nodiscard]] std::unique_ptr<HostConnection> connect(Timeout listener_wait, Timeout timeout = {}) const;
  int reconnect(Clock::time_point deadline);
  std::unique_ptr<HostConnection> connect_after(std::chrono::milliseconds pause, Clock::time_point deadline,
                                                std::string& problem);
  bool take_over(std::unique_ptr<HostConnection> connection);
  void give_up_locks();
  void begin_run(File& file);
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
  bool reconnecting_ = false;  ///< one call does, with the lock open
  std::condition_variable_any reconnected_;
  bool unreachable_ = false;  ///< the last call that connected has timed out
  Clock::time_point next_try_{};

  std::mutex noted_mutex_;  ///< never held during a wait for the server
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
