// SPDX-License-Identifier: Apache-2.0
// Accounts for the budget: which sections are granted, and which grants may be made next. It changes a layout one pair
// at a time. Arithmetic only; sizes are in lines of 64 bytes.
//
// May include: nothing of ours.
//
// Why no byte is lost, and no memory granted twice:
//  1. A pair has at most one outstanding grant. Until the peer agrees, the pair holds the larger of the old and the
//     offered size: the peer may use either.
//  2. A growing grant is made only if the sum of what all pairs hold stays within the budget. A shrinking grant is made
//     at once. So memory freed by a shrink is granted to others only after the peer has agreed to the shrink.
//  3. A peer agrees only while its section is drained: everything it published was read, and it has the credit
//     (SectionWriter::drained). So no byte lies in the section during a change, and both ends start again at the same
//     position.
//  4. A peer publishes nothing between seeing a grant and agreeing to it, and stores its agreement before its next
//     tail. So bytes after an agreement lie where the new size puts them, and bytes before it where the old size did.
//  5. The reader reads the agreement after the tail. The agreement is not newer than unread bytes before that tail (3),
//     and not older than bytes after the agreement (4).
//  6. While a grant is outstanding, credit is returned for every byte at once. So the section drains as it is read, and
//     a pair with no message in flight agrees as soon as it looks.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mailbox/divide.hpp"

namespace wherry::mailbox {

class Ledger {
 public:
  explicit Ledger(std::uint64_t budget) : budget_(budget) {}

  void set_budget(std::uint64_t budget) noexcept { budget_ = budget; }
  /// Reserves memory for peers numbered below `count`. Nothing else allocates. Throws std::bad_alloc.
  void reserve(std::size_t count) {
    accounts_.resize(std::max(accounts_.size(), count));
    pending_.reserve(accounts_.size());
  }
  /// Adds a peer whose initial section of `lines` is granted at once.
  void open(std::uint32_t peer, Lines lines) noexcept {
    accounts_[peer] = {.target = lines, .offered = lines, .listed = accounts_[peer].listed};
    held_ += lines;
  }
  void close(std::uint32_t peer) noexcept {
    held_ -= held(accounts_[peer]);
    accounts_[peer] = {.listed = accounts_[peer].listed};
  }
  /// Sets the size that the peer should have.
  void set_target(std::uint32_t peer, Lines lines) noexcept {
    Account& account = accounts_[peer];
    account.target = lines;
    if (account.target != latest(account)) list(peer);
  }
  /// The peer has agreed to its outstanding grant.
  void on_agreement(std::uint32_t peer) noexcept {
    Account& account = accounts_[peer];
    assert(account.offered != 0);
    held_ -= held(account) - account.offered;
    account.current = account.offered;
    account.offered = 0;
    if (account.target != account.current) list(peer);
  }

  /// Calls grant(peer, lines) for each grant that may be made now.
  template <class Grant>
  void grant_pending(Grant&& grant) noexcept {
    for (const bool grows : {false, true}) {
      std::size_t kept = 0;
      for (const std::uint32_t peer : pending_) {
        Account& account = accounts_[peer];
        if (account.offered == 0) offer(account, grows, [&](Lines lines) { grant(peer, lines); });
        account.listed = account.offered == 0 && account.current != account.target;
        if (account.listed) pending_[kept++] = peer;
      }
      pending_.resize(kept);
    }
    assert(held_ == sum());
  }

  /// Whether a peer without an outstanding grant differs from its target.
  [[nodiscard]] bool has_pending() const noexcept { return !pending_.empty(); }
  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }

 private:
  struct Account {
    Lines current = 0;  ///< in use by the peer; 0: it has not agreed to any grant yet
    Lines target = 0;
    Lines offered = 0;  ///< outstanding grant; 0: none
    bool listed = false;
  };

  static Lines held(const Account& account) { return std::max(account.current, account.offered); }
  static Lines latest(const Account& account) { return account.offered != 0 ? account.offered : account.current; }

  void list(std::uint32_t peer) noexcept {
    if (accounts_[peer].listed) return;
    accounts_[peer].listed = true;
    pending_.push_back(peer);
  }

  template <class Make>
  void offer(Account& account, bool grows, Make&& make) noexcept {
    if (account.current == account.target || (account.target > account.current) != grows) return;
    const Lines lines = grows ? affordable(account) : account.target;
    if (lines == account.current) return;
    account.offered = lines;
    held_ += held(account) - account.current;
    make(lines);
  }

  /// The size to which an account may grow now: its target, or at least half of the way. So a peer that does not give
  /// back lines it should delays the others only in part.
  [[nodiscard]] Lines affordable(const Account& account) const noexcept {
    const Lines wanted = account.target - account.current;
    const std::uint64_t free = held_ < budget_ ? budget_ - held_ : 0;
    if (free >= wanted) return account.target;
    return free >= (wanted + 1) / 2 ? account.current + static_cast<Lines>(free) : account.current;
  }

  [[nodiscard]] std::uint64_t sum() const noexcept {
    std::uint64_t all = 0;
    for (const Account& account : accounts_) all += held(account);
    return all;
  }

  std::uint64_t budget_;
  std::uint64_t held_ = 0;
  std::vector<Account> accounts_;
  std::vector<std::uint32_t> pending_;
};

}  // namespace wherry::mailbox
