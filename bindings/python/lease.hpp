// SPDX-License-Identifier: Apache-2.0
// Returns loans and messages to their publisher or subscriber in its turn, whichever thread deletes the last array that
// uses them.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/python/interpreter.hpp"

namespace wherry::python {

/// Queues leases that end until their owner's turn is free. Python's garbage collector may end a lease in any thread,
/// during a call on the owner. The lease then waits until that call, or its next slice, is over.
template <class Lease>
class LeaseReturns {
 public:
  /// Releases the lease now if no call uses the owner. Otherwise the thread that has the turn releases it.
  void give(Lease lease) {
    if (generation_ != fork_generation()) return;  // a forked child's copy, which returns nothing
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(lease));
    }
    settle();
  }
  /// Releases the queued leases. Called by the thread that has the turn, between its calls.
  void release_waiting() {
    std::vector<Lease> leases;
    const std::lock_guard lock(mutex_);
    leases.swap(waiting_);
    for (Lease& lease : leases) lease.release();
  }
  /// Call it after the turn was released: leases that were queued meanwhile must not wait for the next call.
  void settle() {
    while (!is_empty() && turn.try_take()) {
      const Taken taken(turn);
      release_waiting();
    }
  }

  Turn turn;  ///< taken by all calls on the owner

 private:
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return waiting_.empty();
  }

  std::mutex mutex_;
  std::vector<Lease> waiting_;
  std::uint32_t generation_ = fork_generation();
};

/// Holds the owner's turn for the time of a call.
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
