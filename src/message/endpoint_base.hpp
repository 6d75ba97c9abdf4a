// SPDX-License-Identifier: Apache-2.0
// The common base of publisher and subscriber: accepts peers, waits for them, and can be cancelled.
//
// May include: base, fabric, stream.
#pragma once

#include <sched.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>

#include <wherry/message.hpp>

#include "base/clock.hpp"
#include "base/fork_generation.hpp"
#include "base/log.hpp"
#include "message/connection_setup.hpp"
#include "message/wait_set.hpp"
#include "stream/waiter.hpp"

namespace wherry::message {

class EndpointBase {
 public:
  explicit EndpointBase(fabric::Bell bell) : wait_set_(bell), setup_(wait_set_) {}

  void cancel() noexcept {
    // outside: the flag carries all the information; the bell only wakes sleeping threads to read it.
    cancelled_.store(true, std::memory_order_release);
    wait_set_.notify();
  }
  [[nodiscard]] const Address& local() const noexcept { return setup_.local(); }

 protected:
  [[nodiscard]] bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }

  /// Sleeps as WaitSet::sleep_unless, then adds the wake-up time to the spin budget.
  template <class Ready>
  void sleep_unless(fabric::Deadline deadline, Ready&& ready) {
    wait_set_.sleep_unless(deadline, ready);
    const auto last = wait_set_.last_notification();
    if (last) spin_.learn(*last, monotonic_ns(), static_cast<std::uint64_t>(::sched_getcpu()));
  }

  /// Blocks until `count()` is at least `wanted`. `join_new()` adds new peers and removes dead ones.
  template <class Count, class JoinNew>
  std::size_t wait_for_peers(std::size_t wanted, Timeout timeout, Count&& count, JoinNew&& join_new) {
    const fabric::Deadline deadline = stream::deadline_of(timeout);
    while (true) {
      join_new();
      if (count() >= wanted) return count();
      if (!setup_.open()) {
        throw Error(ENOTCONN, "wait for peers", "",
                    "no peer can connect: listen on an address or connect to one first");
      }
      if (stream::has_passed(deadline)) {
        throw Error(ETIMEDOUT, "wait for peers at", local().to_string(),
                    std::to_string(wanted) + " were wanted, " + std::to_string(count()) + " came in time");
      }
      wait_set_.sleep_unless(deadline, [] { return false; });
    }
  }
  /// For calls that move data: the failure of a new peer is logged, not thrown to the caller. The port is then paused.
  template <class JoinNew>
  void join_new_quietly(JoinNew&& join_new) noexcept {
    if (!setup_.open()) return;
    try {
      join_new();
    } catch (const std::exception& error) {
      log::write(log::Level::warning, error.what());
      try {
        setup_.set_port_paused(true);
      } catch (...) {
      }
    }
  }

  const Origin origin_;  ///< in a forked child's copy everything shared belongs to the parent
  WaitSet wait_set_;
  ConnectionSetup setup_;
  stream::SpinBudget spin_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace wherry::message
