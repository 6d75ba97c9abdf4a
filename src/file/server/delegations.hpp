// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/server/server_handles.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// What clients may keep of files. A delegation stands on a lease of the kernel's (F_SETLEASE): the file is not open
/// for writing, and an open for writing, also by a program of the host, waits until the lease is given up. That is when
/// its last delegation is given back, or has expired.
///
/// The kernel tells of such an open by a signal, which would be the whole process's. Leases are looked at every 10 ms
/// instead, while there are any.
///
/// Threads: any. Blocks as the file system does.
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
    std::vector<Identity> recalls_{};  ///< by Delegations::mutex_
  };

  /// @param grants  false: refuses all
  Delegations(HandleBudget& budget, bool grants) : budget_(budget), grants_(grants) {}
  Delegations(const Delegations&) = delete;
  Delegations& operator=(const Delegations&) = delete;
  ~Delegations();

  /// Delegates the file of this descriptor, or does so for longer. False: the client is not known, the file is open for
  /// writing, or the kernel gives this process no lease on it.
  [[nodiscard]] bool grant(std::uint64_t client, int descriptor);
  void give_back(std::uint64_t client, std::span<const Identity> files);
  /// An open has met a lease: recalls what is in its way at once.
  void look();

 private:
  struct Lease {
    UniqueFd descriptor{};
    std::map<std::uint64_t, Clock::time_point> holders{};  ///< until when, by the client's number
    bool recalled = false;
  };
  using Leases = std::map<Identity, Lease>;

  std::uint64_t add(Client& client);
  void run();
  void look_at_all(Clock::time_point now);
  void recall(const Identity& file, Lease& lease);
  Leases::iterator end(Leases::iterator lease);

  HandleBudget& budget_;
  const bool grants_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Client*> clients_;
  Leases leases_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace wherry::file
