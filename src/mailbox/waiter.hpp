// SPDX-License-Identifier: Apache-2.0
// Waits for events of a mailbox: polls for the spin budget, then sleeps with all bells armed.
//
// May include: base, layout, fabric, stream.
#pragma once

#include <atomic>
#include <cstdint>

#include <wherry/stream.hpp>

#include "mailbox/doorbells.hpp"
#include "mailbox/early_data.hpp"
#include "mailbox/pairs.hpp"
#include "mailbox/progress_engine.hpp"
#include "mailbox/write_interest.hpp"
#include "stream/waiter.hpp"

namespace wherry::mailbox {

class Waiter {
 public:
  Waiter(Pairs& pairs, EarlyData& early, WriteInterest& write_interest, Doorbells& bells, ProgressEngine& engine);

  // As the functions of Mailbox.
  bool wait(const Timeout& timeout) noexcept;
  bool sleep(const Timeout& timeout) noexcept;
  bool progress() noexcept;
  void interrupt() noexcept;
  int descriptor() noexcept;

  /// Waits for an event that ends a receive: a piece, a loss or an interruption. False: the deadline passed.
  bool wait_to_receive(const fabric::Deadline& deadline) noexcept { return wait_for(Events::received, deadline); }
  /// Waits until `ready()`, a condition of one pair; events of other pairs do not end the wait. `bell` is the one that
  /// signals the condition. False: the deadline passed.
  template <class Ready>
  bool wait_for_pair(Ready&& ready, fabric::Bell bell, const fabric::Deadline& deadline) noexcept;
  /// Whether there was an interruption since the last call.
  bool take_interruption() noexcept { return interrupted_.exchange(false, std::memory_order_relaxed); }
  /// Makes the exposed descriptor readable while a pair is active (its bell is not armed) or an event was found
  /// already.
  void signal_descriptor() noexcept;

 private:
  /// The events that end a wait.
  enum class Events : std::uint8_t { all, received };

  /// Whether there is an event that serving the pairs would not find again.
  [[nodiscard]] bool has(Events wanted) const noexcept;
  bool find(Events wanted) noexcept;
  bool wait_for(Events wanted, const fabric::Deadline& deadline) noexcept;
  bool spin(Events wanted, const fabric::Deadline& deadline) noexcept;
  /// How words are polled: directly (mapped memory), through the fabric's progress calls, or never. A mailbox has one
  /// fabric.
  enum class Looks : std::uint8_t { unknown, straight, through, never };
  Looks looks() noexcept;
  void progress_active() noexcept;
  void end_progress() noexcept;
  template <class Ready>
  bool look(stream::SpinBudget& spin, Ready&& ready, const fabric::Deadline& deadline) noexcept;
  bool report(bool found) noexcept;
  void learn(stream::SpinBudget& spin, fabric::Bell bell) noexcept;

  Pairs& pairs_;
  EarlyData& early_;
  WriteInterest& write_interest_;
  Doorbells& bells_;
  ProgressEngine& engine_;
  stream::SpinBudget data_spin_;
  stream::SpinBudget room_spin_;
  Looks looks_ = Looks::unknown;
  std::atomic<bool> interrupted_{false};
};

template <class Ready>
bool Waiter::look(stream::SpinBudget& spin, Ready&& ready, const fabric::Deadline& deadline) noexcept {
  const Looks how = looks();
  if (how == Looks::through) {
    const auto through = [&] {
      progress_active();
      return ready();
    };
    const bool is_ready = spin.look(through, deadline);
    end_progress();
    return is_ready;
  }
  return how != Looks::never && spin.look(ready, deadline);
}

template <class Ready>
bool Waiter::wait_for_pair(Ready&& ready, fabric::Bell bell, const fabric::Deadline& deadline) noexcept {
  stream::SpinBudget& spin = bell == fabric::Bell::data ? data_spin_ : room_spin_;
  while (true) {
    if (look(spin, ready, deadline)) return true;
    (void)engine_.serve_active();
    engine_.poll_kernel();
    if (ready()) return true;
    if (stream::has_passed(deadline)) return false;
    engine_.arm_active();
    (void)engine_.serve_active();
    if (ready()) return true;
    engine_.sleep(deadline);
    learn(spin, bell);
  }
}

}  // namespace wherry::mailbox
