// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/unique_fd.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

/// Lets a client hold back its writes to a file for a while: only this client has the file open, by one handle. It
/// rests on a kernel lease (F_SETLEASE, F_WRLCK) on the open file description of that handle. Every other open of the
/// file, also by a program of the host, waits until the lease is given up.
///
/// States, and the function that causes each transition:
///
///   held     -> recalled  look, Change: an open waits for the end of the lease, or has failed because of it
///   held     -> over      end: given back, or the handle is closed
///   recalled -> over      end
///   recalled -> cut off   look, Change: the client has written nothing for `timeout`, or has not ended it within
///                         kTimeouts of them. The lease is given up, and the handle may make no more changes
///
/// The kernel revokes a lease after /proc/sys/fs/lease-break-time. No lease is taken unless that is longer than all
/// timeouts. Therefore no client can change a file whose lease the kernel has already revoked.
///
/// Thread-safe.
class WriteDelegation {
 public:
  using Clock = std::chrono::steady_clock;
  using Identity = layout::FileIdentity;
  enum class State : std::uint8_t {
    held,
    recalled,
    over,
    changing,  ///< during a Change, which advances the state itself
  };
  static constexpr int kTimeouts = 4;

  /// `descriptor` must be open for writing. Null: the kernel gives no lease.
  /// @param notified  the thread that gets kLeaseSignal when the state must be looked at
  static std::shared_ptr<WriteDelegation> take(int descriptor, std::uint64_t client, Clock::duration timeout,
                                               pid_t notified);
  WriteDelegation(const WriteDelegation&) = delete;
  WriteDelegation& operator=(const WriteDelegation&) = delete;
  ~WriteDelegation() { end(); }

  [[nodiscard]] std::uint64_t client() const { return client_; }
  [[nodiscard]] const Identity& file() const { return file_; }

  /// Gives up the lease. Waits for a change in progress.
  void end();
  /// Never blocks.
  State look(Clock::time_point now);
  /// Whether an open has met the lease; valid once the delegation is over.
  [[nodiscard]] bool was_recalled() const;
  [[nodiscard]] bool was_cut_off() const;

  /// A change of the file by the handle. While the object lives, the client is not cut off.
  class Change {
   public:
    explicit Change(WriteDelegation* delegation);
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change();
    /// False: the client was cut off; the change must return ESTALE.
    [[nodiscard]] bool is_allowed() const { return delegation_ == nullptr || !delegation_->cut_off_; }

   private:
    WriteDelegation* delegation_;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  WriteDelegation(UniqueFd lease, const Identity& file, std::uint64_t client, Clock::duration timeout)
      : lease_(std::move(lease)), file_(file), client_(client), timeout_(timeout) {}
  void advance(Clock::time_point now);
  void give_up();

  mutable std::mutex mutex_;
  UniqueFd lease_;  ///< of the handle's open file description; invalid: over
  Identity file_;
  std::uint64_t client_;
  Clock::duration timeout_;
  Clock::time_point last_unbroken_ = Clock::now();  ///< last time at which no open had met the lease
  Clock::time_point timeout_start_{};               ///< time of the recall, or of the last change after it
  bool recalled_ = false;
  bool cut_off_ = false;
};

}  // namespace wherry::file
