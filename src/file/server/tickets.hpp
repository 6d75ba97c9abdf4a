// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "file/wire/layout/wire.hpp"

namespace wherry::file {

class HandleBudget;
class Tickets;

/// The access that all tickets of one handle give, until it is ended. Thread-safe; never blocks.
class Grant {
 public:
  /// Marks a change of the file as in progress. False: the grant has ended, and the change is forbidden.
  class Use {
   public:
    /// @param grant  null: the file was not opened by a ticket
    explicit Use(Grant* grant) : grant_(grant), allowed_(grant == nullptr || grant->enter()) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (grant_ != nullptr) grant_->leave();
    }
    explicit operator bool() const { return allowed_; }

   private:
    Grant* grant_;
    bool allowed_;
  };

  void end() { state_.fetch_or(kEnded); }
  [[nodiscard]] bool has_ended() const { return (state_.load() & kEnded) != 0; }
  /// After `end`: once this is false, no change by this grant can follow.
  [[nodiscard]] bool is_in_use() const { return (state_.load() & ~kEnded) != 0; }

 private:
  static constexpr std::uint32_t kEnded = std::uint32_t{1} << 31;

  bool enter() { return (state_.fetch_add(1) & kEnded) == 0; }
  void leave() { state_.fetch_sub(1); }

  std::atomic<std::uint32_t> state_{0};  ///< kEnded, and the number of uses
};

/// Ties the tickets that were made of a handle to it: they end with it.
class TicketMaker {
 public:
  TicketMaker() = default;
  explicit TicketMaker(Tickets& tickets) : tickets_(&tickets), grant_(std::make_shared<Grant>()) {}
  TicketMaker(TicketMaker&& other) noexcept
      : tickets_(std::exchange(other.tickets_, nullptr)), grant_(std::move(other.grant_)) {}
  TicketMaker& operator=(TicketMaker&& other) noexcept {
    end();
    tickets_ = std::exchange(other.tickets_, nullptr);
    grant_ = std::move(other.grant_);
    return *this;
  }
  TicketMaker(const TicketMaker&) = delete;
  TicketMaker& operator=(const TicketMaker&) = delete;
  ~TicketMaker() { end(); }

  /// Null: no ticket was made of the handle.
  [[nodiscard]] const std::shared_ptr<Grant>& grant() const { return grant_; }
  /// Ends the grant and voids unused tickets. Waits for writes in progress.
  void end() noexcept;

 private:
  Tickets* tickets_ = nullptr;
  std::shared_ptr<Grant> grant_;
};

/// The unused tickets of a server. Thread-safe; never blocks.
class Tickets {
 public:
  /// A file that stays open until its ticket is used.
  struct Offer {
    UniqueFd descriptor;
    std::shared_ptr<Grant> grant;
  };
  /// Limit for all clients together. Programs use a ticket at once.
  static constexpr std::size_t kMost = 256;

  explicit Tickets(HandleBudget& budget) : budget_(budget) {}
  Tickets(const Tickets&) = delete;
  Tickets& operator=(const Tickets&) = delete;
  ~Tickets();

  /// Returns 0, ENFILE if there are too many, or an errno value of getrandom.
  int make(Offer offer, layout::FileTicket& ticket);
  /// Uses a ticket: once, and within kFileTicketMs. Empty: no such ticket.
  std::optional<Offer> take(const layout::FileTicket& ticket);

 private:
  friend class TicketMaker;
  using Clock = std::chrono::steady_clock;
  struct Unused {
    layout::FileTicket ticket;
    Clock::time_point until;
    Offer offer;
  };
  /// Removes tickets that are too old or whose grant has ended.
  void drop_void();
  void drop_void_locked();

  HandleBudget& budget_;
  std::mutex mutex_;
  std::vector<Unused> unused_;
};

}  // namespace wherry::file
