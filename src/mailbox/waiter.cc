// SPDX-License-Identifier: Apache-2.0
#include "mailbox/waiter.hpp"

#include "mailbox/impl.hpp"

namespace wherry::mailbox {

using fabric::Bell;

Waiter::Waiter(Pairs& pairs, EarlyData& early, WriteInterest& write_interest, Doorbells& bells, ProgressEngine& engine)
    : pairs_(pairs), early_(early), write_interest_(write_interest), bells_(bells), engine_(engine) {}

bool Waiter::has(Events wanted) const noexcept {
  if (interrupted_.load(std::memory_order_relaxed) || pairs_.has_losses() || early_.has_unread()) return true;
  return wanted == Events::all && write_interest_.has_writable();
}

bool Waiter::find(Events wanted) noexcept {
  const bool served = engine_.serve_active();
  return has(wanted) || served;
}

bool Waiter::wait(const Timeout& timeout) noexcept {
  write_interest_.drop_reported();
  return report(wait_for(Events::all, stream::deadline_of(timeout)));
}

bool Waiter::sleep(const Timeout& timeout) noexcept {
  write_interest_.drop_reported();
  const fabric::Deadline deadline = stream::deadline_of(timeout);
  engine_.poll_kernel_after(1);
  while (true) {
    if (find(Events::all)) return report(true);
    const std::size_t active = bells_.active().size();
    if (!engine_.arm_all()) continue;
    bells_.silence_descriptor();
    if (has(Events::all)) return report(true);
    if (stream::has_passed(deadline)) return report(false);
    engine_.sleep(deadline);
    if (bells_.rung() != nullptr) engine_.reactivate(active);
  }
}

bool Waiter::progress() noexcept {
  write_interest_.drop_reported();
  if (bells_.is_exposed()) {
    engine_.poll_kernel();
  } else {
    engine_.poll_kernel_after(8);
  }
  if (find(Events::all)) return report(true);
  if (!bells_.is_exposed()) return false;
  if (!engine_.arm_all()) return report(true);
  bells_.silence_descriptor();
  return false;
}

bool Waiter::wait_for(Events wanted, const fabric::Deadline& deadline) noexcept {
  engine_.poll_kernel_after(1);
  while (true) {
    if (find(wanted) || spin(wanted, deadline)) return true;
    engine_.poll_kernel();
    if (find(wanted)) return true;
    if (!engine_.arm_all()) continue;
    bells_.silence_descriptor();
    if (has(wanted)) return true;
    if (stream::has_passed(deadline)) return false;
    engine_.sleep(deadline);
    learn(data_spin_, Bell::data);
  }
}

/// Polls the active pairs for the spin budget. True: there is an event.
bool Waiter::spin(Events wanted, const fabric::Deadline& deadline) noexcept {
  if (bells_.active().empty()) return false;
  const auto ready = [&] {
    engine_.poll_kernel_after(static_cast<unsigned>(bells_.active().size()));
    return find(wanted);
  };
  return look(data_spin_, ready, deadline);
}

Waiter::Looks Waiter::looks() noexcept {
  if (looks_ != Looks::unknown || bells_.active().empty()) return looks_;
  if (const auto& connection = bells_.active().front()->connection; connection != nullptr) {
    looks_ = connection->map() != nullptr ? Looks::straight : connection->progresses() ? Looks::through : Looks::never;
  }
  return looks_;
}

void Waiter::progress_active() noexcept {
  for (Pair* pair : bells_.active()) {
    if (pair->connection != nullptr) pair->connection->progress(Bell::data);
  }
}

/// Ends the progress of pairs that are still active. Arming the bell of the others has ended theirs.
void Waiter::end_progress() noexcept {
  for (Pair* pair : bells_.active()) {
    if (pair->connection != nullptr) pair->connection->end_progress(Bell::data);
  }
}

void Waiter::learn(stream::SpinBudget& spin, Bell bell) noexcept {
  if (const Pair* rung = bells_.rung()) spin.learn(*rung->connection, bell);
}

/// Ends a wait, and returns its result. `found`: whether the wait found an event.
bool Waiter::report(bool found) noexcept {
  write_interest_.mark_reported();
  signal_descriptor();
  return take_interruption() || found;
}

void Waiter::interrupt() noexcept {
  // outside: the flag carries all the information; the bell only wakes a sleeping thread to read it.
  interrupted_.store(true, std::memory_order_release);
  bells_.notify_self();
}

int Waiter::descriptor() noexcept {
  const int descriptor = bells_.descriptor();
  signal_descriptor();
  return descriptor;
}

void Waiter::signal_descriptor() noexcept {
  if (!bells_.active().empty() || has(Events::all)) bells_.signal_descriptor();
}

}  // namespace wherry::mailbox

namespace wherry {

bool Mailbox::wait(Timeout timeout) noexcept { return impl_->waiter.wait(timeout); }
bool Mailbox::sleep(Timeout timeout) noexcept { return impl_->waiter.sleep(timeout); }
bool Mailbox::progress() noexcept { return impl_->waiter.progress(); }
void Mailbox::interrupt() noexcept { impl_->waiter.interrupt(); }
int Mailbox::descriptor() noexcept { return impl_->waiter.descriptor(); }

}  // namespace wherry
