// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// What clients may keep of files. A delegation stands on a lease of the kernel's (F_SETLEASE): the file is not open
/// for writing, and an open for writing, also by a program of the host, waits until the lease is given up. That is when
/// its last delegation is given back, or has expired.
///
/// States of a file, and what leads from one to the next:
///
///   unknown -> leased   grant: the kernel gives a lease
///   leased  -> broken   look: an open waits for the end of the lease, or has failed because of it. Clients are told
///   leased  -> unknown  look: all delegations have expired
///   broken  -> resting  give_back, look: the last delegation has ended, and the lease with it
///   resting -> unknown  look: opens that are tried again have had their turn
///
/// The kernel tells of a broken lease by a signal, which would be the whole process's. Leases are looked at every 10 ms
/// instead, while there are any.
///
/// One client alone may have a file for writing (WriteDelegation). Its recall is repeated until the delegation is over.
///
/// Threads: any. `grant` blocks as the file system does, without a lock.
class Delegations {
 public:
  using Clock = std::chrono::steady_clock;
  using Identity = layout::FileIdentity;

  /// One that is told of recalls. Of one thread at a time.
  class Client {
   public:
    /// Throws Error: EMFILE; EAGAIN: no more threads.
    explicit Client(Delegations& delegations);
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    /// Its delegations expire.
    ~Client();

    /// Not to be guessed: other connections of this client ask by it.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// Readable when there are recalls that `silence` has not heard of.
    [[nodiscard]] int descriptor() const { return event_.get(); }
    void silence() const;
    /// What is to be given back, each once; at most layout::kFileMaxIdentities.
    [[nodiscard]] std::vector<Identity> take();

   private:
    friend class Delegations;
    Delegations& delegations_;
    UniqueFd event_;
    std::uint64_t number_ = 0;
    // By Delegations::mutex_:
    std::vector<Identity> recalls_{};
    Clock::time_point trusted_{};  ///< from then on: after a recall that was not heeded
    int unheeded_ = 0;             ///< recalls
  };

  /// @param grants  false: refuses all
  /// @param margin  how much longer a delegation lasts here than a client is told
  /// @param timeout  as of WriteDelegation
  Delegations(HandleBudget& budget, bool grants, std::chrono::milliseconds margin, std::chrono::milliseconds timeout)
      : budget_(budget), grants_(grants), margin_(margin), timeout_(timeout) {}
  Delegations(const Delegations&) = delete;
  Delegations& operator=(const Delegations&) = delete;
  ~Delegations();

  /// Delegates the file of this descriptor, or does so for longer. False: the client is not known, the file is open for
  /// writing or was a moment ago, or no lease on it would tell of all changes, or is to be had.
  [[nodiscard]] bool grant(std::uint64_t client, int descriptor);
  /// Delegates the file of a descriptor for writing. Null: as `grant`, or others have it open, or the client has
  /// `most_writers` files for writing already.
  [[nodiscard]] std::shared_ptr<WriteDelegation> grant_write(std::uint64_t client, int descriptor);
  /// How many bytes of a file that is delegated for writing its client may keep: there is to be room for them, beside
  /// those that others may keep. 0: it was recalled, or there is no room.
  [[nodiscard]] std::uint64_t reserve(const WriteDelegation& writer, int descriptor);
  /// Which of the files that were recalled are still waited for. For what is to be done before they are given back
  /// there is time from now on.
  [[nodiscard]] std::vector<Identity> heed(std::uint64_t client, std::span<const Identity> files);
  /// What was recalled. Other files are left alone: an answer that comes late must not end a later delegation.
  void give_back(std::uint64_t client, std::span<const Identity> files);
  /// An open has met a lease: recalls what is in its way at once.
  void look();
  /// How many files one client may have for writing.
  [[nodiscard]] std::size_t most_writers() const { return most_leases() / kWriterShares; }

 private:
  struct Holder {
    Clock::time_point since;
    Clock::time_point until;
    std::optional<Clock::time_point> recalled{};
    bool heeded = false;
  };
  struct File {
    UniqueFd lease{};                           ///< not valid: resting
    std::map<std::uint64_t, Holder> holders{};  ///< by the client's number
    bool broken = false;
    Clock::time_point rests_until{};
  };
  struct Writer {
    std::shared_ptr<WriteDelegation> delegation;
    std::uint64_t reserved = 0;
    Clock::time_point next_recall{};
  };
  using Files = std::map<Identity, File>;
  /// Leases that have ended, closed without the lock.
  using Ended = std::vector<UniqueFd>;

  std::uint64_t add(Client& client);
  static constexpr std::size_t kWriterShares = 4;
  [[nodiscard]] std::size_t most_leases() const;
  [[nodiscard]] std::size_t writers_of(std::uint64_t client) const;
  [[nodiscard]] bool may_hold(std::uint64_t client, Clock::time_point now) const;
  bool prolong(File& file, std::uint64_t client, Clock::time_point now);
  bool make(const Identity& identity, std::uint64_t client, UniqueFd lease);
  void run();
  void look_at_all(Clock::time_point now, Ended& ended);
  void look_at_writers(Clock::time_point now);
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
  std::condition_variable changed_;
  std::map<std::uint64_t, Client*> clients_;
  Files files_;
  std::vector<Writer> writers_;
  std::size_t leases_ = 0;  ///< of `files_` and `writers_`, and those that are being made
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace wherry::file
