// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/server/server_handles.hpp"
#include "file/server/write_delegation.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// The files that clients may cache. Each delegation rests on a kernel lease (F_SETLEASE): the file is not open for
/// writing. An open for writing, also by a program of the host, waits until the lease is given up. The server gives it
/// up when the last delegation of the file is given back or has expired.
///
/// States of a file, and the function that causes each transition:
///
///   unknown -> leased   grant: the kernel gives a lease
///   leased  -> broken   look: an open waits for the end of the lease, or has failed because of it. Recalls are sent
///   leased  -> unknown  look: all delegations have expired
///   broken  -> resting  give_back, look: the last delegation has ended, and the lease with it
///   resting -> unknown  look: opens that are retried have had time to succeed
///
/// The kernel reports a broken lease by a signal to a thread of this class (take_lease). The thread looks at all leases
/// then, and when a delegation expires or a recall is due. It also looks once a second while there are leases, because
/// a client that has borrowed a descriptor can take its signals away. Without leases it sleeps.
///
/// Only one client may have a file delegated for writing (WriteDelegation). Its recall is repeated until it ends.
///
/// Thread-safe. `grant` blocks as the file system does, and holds no lock meanwhile.
class Delegations {
 public:
  using Clock = std::chrono::steady_clock;
  using Identity = layout::FileIdentity;

  /// A client that receives recalls. One thread at a time.
  class Client {
   public:
    /// Throws Error: EMFILE, or EAGAIN (no more threads).
    explicit Client(Delegations& delegations);
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    /// Its delegations stay until they expire.
    ~Client();

    /// Random, since other connections of this client identify themselves by it.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// Readable if there are recalls since the last `silence`.
    [[nodiscard]] int descriptor() const { return event_.get(); }
    void silence() const;
    /// Takes pending recalls, each once; at most layout::kFileMaxIdentities.
    [[nodiscard]] std::vector<Identity> take();

   private:
    friend class Delegations;
    Delegations& delegations_;
    UniqueFd event_;
    std::uint64_t number_ = 0;
    // Guarded by Delegations::mutex_:
    std::vector<Identity> recalls_{};
    Clock::time_point refused_until_{};  ///< no delegations before this time, after an ignored recall
    int ignored_recalls_ = 0;            ///< number of ignored recalls, bounded
  };

  /// @param grants  false: refuses every delegation
  /// @param margin  how much longer a delegation lasts here than is reported to the client
  /// @param timeout  as in WriteDelegation
  Delegations(HandleBudget& budget, bool grants, std::chrono::milliseconds margin, std::chrono::milliseconds timeout)
      : budget_(budget), grants_(grants), margin_(margin), timeout_(timeout) {}
  Delegations(const Delegations&) = delete;
  Delegations& operator=(const Delegations&) = delete;
  ~Delegations();

  /// Delegates the file of a descriptor, or extends its delegation. False: the client is unknown, the file is or was a
  /// moment ago open for writing, a lease on this file system would not report all changes, or the kernel gives none.
  [[nodiscard]] bool grant(std::uint64_t client, int descriptor);
  /// Delegates the file of a descriptor for writing. Null: as `grant`, or other processes have the file open, or the
  /// client already has `most_writers` files for writing.
  [[nodiscard]] std::shared_ptr<WriteDelegation> grant_write(std::uint64_t client, int descriptor);
  /// Returns how many bytes of a file delegated for writing its client may hold back. They must fit on the file system
  /// beside the bytes reserved for other files. 0: the file was recalled, or there is no room.
  [[nodiscard]] std::uint64_t reserve(const WriteDelegation& writer, int descriptor);
  /// Returns those of `files` that were recalled and not given back. Extends each of them once, so that the client has
  /// time to finish with it.
  [[nodiscard]] std::vector<Identity> acknowledge(std::uint64_t client, std::span<const Identity> files);
  /// Ends delegations that were recalled. Ignores other files: a late answer must not end a newer delegation.
  void give_back(std::uint64_t client, std::span<const Identity> files);
  /// Checks all leases at once, because an open has met one, and sends recalls.
  void look();
  /// How many files one client may have delegated for writing.
  [[nodiscard]] std::size_t most_writers() const { return most_leases() / kWriterShares; }

 private:
  struct Holder {
    Clock::time_point since;
    Clock::time_point until;
    std::optional<Clock::time_point> recalled{};
    bool is_acknowledged = false;
  };
  struct File {
    UniqueFd lease{};                           ///< invalid: resting
    std::map<std::uint64_t, Holder> holders{};  ///< by client number
    bool broken = false;
    Clock::time_point rests_until{};
  };
  struct Writer {
    std::shared_ptr<WriteDelegation> delegation;
    std::uint64_t reserved = 0;
    Clock::time_point next_recall{};
  };
  using Files = std::map<Identity, File>;
  /// Ended leases, to be closed without the lock.
  using Ended = std::vector<UniqueFd>;

  std::uint64_t add(Client& client);
  static constexpr std::size_t kWriterShares = 4;
  [[nodiscard]] std::size_t most_leases() const;
  [[nodiscard]] std::size_t writers_of(std::uint64_t client) const;
  [[nodiscard]] bool may_hold(std::uint64_t client, Clock::time_point now) const;
  bool prolong(File& file, std::uint64_t client, Clock::time_point now);
  bool make(const Identity& identity, std::uint64_t client, UniqueFd lease);
  void run();
  void wake(Clock::time_point at);
  [[nodiscard]] Clock::time_point look_at_all(Clock::time_point now, Ended& ended);
  [[nodiscard]] Clock::time_point look_at_writers(Clock::time_point now);
  [[nodiscard]] static Clock::time_point due(const File& file);
  [[nodiscard]] Clock::duration longest_pause() const;
  void recall(const Identity& identity, File& file, Clock::time_point now);
  void recall(std::uint64_t number, const Identity& identity);
  [[nodiscard]] bool has_writer(const Identity& identity) const;
  void distrust(std::uint64_t number, Clock::time_point now);
  void expire(File& file, Clock::time_point now);
  void end(File& file, Clock::time_point now, Ended& ended);
  Holder* recalled_holder(std::uint64_t client, const Identity& identity);

  HandleBudget& budget_;
  const bool grants_;
  const std::chrono::milliseconds margin_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable started_;
  std::map<std::uint64_t, Client*> clients_;
  Files files_;
  std::vector<Writer> writers_;
  std::size_t leases_ = 0;  ///< leases of `files_` and `writers_`, and those being made
  bool stopping_ = false;
  std::thread thread_;
  pid_t thread_number_ = 0;        ///< 0: it has not started
  Clock::time_point next_look_{};  ///< when the thread looks at the leases next, unless it is notified
};

}  // namespace wherry::file
