// SPDX-License-Identifier: Apache-2.0
// Loans and messages go back to their publisher or subscriber in its turn, whichever thread ends the last array over
// them.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/python/interpreter.hpp"

namespace wherry::python {

/// Takes leases back. The collector may end one in any thread, beside a call that must not be disturbed: it waits here
/// until that call, or its next slice, is over.
template <class Lease>
class LeaseReturns {
 public:
  /// Releases it now if nothing else uses the owner; else the thread that has the turn does.
  void give(Lease lease) {
    if (generation_ != fork_generation()) return;  // a child's copy, whose end gives nothing back
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(lease));
    }
    settle();
  }
  /// For the thread that has the turn, between its calls.
  void release_waiting() {
    std::vector<Lease> leases;
    const std::lock_guard lock(mutex_);
    leases.swap(waiting_);
    for (Lease& lease : leases) lease.release();
  }
  /// After the turn was given: what came meanwhile must not wait for the next call.
  void settle() {
    while (!is_empty() && turn.try_take()) {
      const Taken taken(turn);
      release_waiting();
    }
  }

  Turn turn;  ///< of all calls on the owner

 private:
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return waiting_.empty();
  }

  std::mutex mutex_;
  std::vector<Lease> waiting_;
  std::uint32_t generation_ = fork_generation();
};

/// The owner's turn for the time of a call.
template <class Lease>
class LeaseTurn {
 public:
  LeaseTurn(LeaseReturns<Lease>& returns, const Deadline& deadline, const char* operation)
      : returns_(returns), taken_(std::in_place, take_turn(returns.turn, deadline, operation)) {
    returns_.release_waiting();
  }
  ~LeaseTurn() {
    taken_.reset();
    returns_.settle();
  }
  LeaseTurn(const LeaseTurn&) = delete;
  LeaseTurn& operator=(const LeaseTurn&) = delete;

 private:
  LeaseReturns<Lease>& returns_;
  std::optional<Taken> taken_;
};

}  // namespace wherry::python
