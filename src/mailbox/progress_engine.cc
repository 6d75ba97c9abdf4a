// SPDX-License-Identifier: Apache-2.0
#include "mailbox/progress_engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace wherry::mailbox {
namespace {

using fabric::Bell;

/// This many pairs stay active while a program polls, however long they are quiet: no system call is needed for them.
constexpr std::size_t kAlwaysActive = 8;

/// How often the kernel is asked about idle pairs while others are active.
constexpr std::chrono::microseconds kPollInterval{20};
/// Added while all pairs are active: new peers and deaths are not urgent, and the call takes as long as a short
/// message.
constexpr std::chrono::microseconds kNoneIsIdle{180};

}  // namespace

ProgressEngine::ProgressEngine(Pairs& pairs, WriteInterest& write_interest, Doorbells& bells,
                               SectionAllocator& sections, Connector& connector)
    : pairs_(pairs), write_interest_(write_interest), bells_(bells), sections_(sections), connector_(connector) {}

bool ProgressEngine::serve(Pair& pair) noexcept {
  // Bytes published before a death or the end are delivered first, so both are read before the section is.
  const bool gone = pair.gone;
  const std::uint64_t finished = pair.in->finished();
  if (pair.claims_again && (gone || finished != 0 || pair.in->has_begun())) [[unlikely]] {
    if (const int error = connector_.claim_again(pair); error != 0) return connector_.lose(pair, error);
  }
  if (pair.out->grant_waits()) (void)pair.out->adopt();
  pair.out->end_overflow();
  const bool piece = pair.in->waiting();
  if (pair.in->take_agreement()) sections_.on_agreement(pair);
  if (pair.in->broken() || pair.out->broken()) return connector_.lose(pair, EPROTO);
  if (piece || pair.early_received != nullptr) {
    pair.idle_looks = 0;
    return true;
  }
  if (finished != 0) return connector_.lose(pair, pair.in->ending(finished));
  if (gone) return connector_.end_of_gone(pair);
  ++pair.idle_looks;
  return write_interest_.check(pair);
}

bool ProgressEngine::serve_active() noexcept {
  bool any = false;
  auto& active = bells_.active();
  for (auto it = active.begin(); it != active.end();) {
    Pair& pair = **it++;
    any |= serve(pair);
  }
  return write_interest_.check_all() || any;
}

void ProgressEngine::poll_kernel_if_due() noexcept {
  looks_ = 0;
  const bool none_is_idle = bells_.active().size() == pairs_.living();
  const auto due = next_poll_ + (none_is_idle ? kNoneIsIdle : kNoneIsIdle.zero());
  if (stream::SteadyClock::now() >= due) poll_kernel();
}

void ProgressEngine::poll_kernel() noexcept {
  const auto now = stream::SteadyClock::now();
  next_poll_ = now + kPollInterval;
  std::array<Source*, 64> events;
  bool refused = false;
  for (Source* source : bells_.take(events, refused)) on_event(*source);
  if (refused) poll_without_epoll();
  connector_.retry_all(now);
}

void ProgressEngine::on_event(Source& source) noexcept {
  switch (source.kind) {
    case Source::Kind::interruption:
      return bells_.silence_self();
    case Source::Kind::port:
      return connector_.accept_all();
    case Source::Kind::attempt:
      return connector_.finish_attempt(*source.pair);
    case Source::Kind::data:
      return on_bell(*source.pair, Bell::data);
    case Source::Kind::space:
      return on_bell(*source.pair, Bell::space);
  }
}

void ProgressEngine::on_bell(Pair& pair, Bell bell) noexcept {
  // An earlier event may have ended the pair.
  if (!pair.is_open()) return;
  if (!pair.connection->silence(bell) && !pair.gone && pair.connection->peer_gone()) {
    pair.gone = true;
    bells_.stop_watching(pair);
  }
  if (bell == Bell::data) bells_.set_rung(pair);
  bells_.activate(pair);
}

/// Treats every event as pending, because the kernel refuses epoll_wait (a seccomp filter).
void ProgressEngine::poll_without_epoll() noexcept {
  connector_.accept_all();
  for (const auto& pair : pairs_) {
    if (pair == nullptr) continue;
    if (pair->attempt != nullptr) connector_.finish_attempt(*pair);
    if (!pair->is_open()) continue;
    for (const Bell bell : fabric::kBells) (void)pair->connection->silence(bell);
    pair->gone = pair->gone || pair->connection->peer_gone();
    bells_.activate(*pair);
  }
}

void ProgressEngine::sleep(fabric::Deadline deadline) noexcept {
  if (const auto retry = connector_.next_retry()) deadline = deadline ? std::min(*deadline, *retry) : *retry;
  bells_.clear_rung();
  (void)bells_.sleep(deadline);
  poll_kernel();
}

/// Arms a pair and looks again. False: there is an event, and the bell is disarmed.
bool ProgressEngine::arm(Pair& pair) noexcept {
  pair.in->return_credit();
  pair.connection->arm(Bell::data);
  // A section or an overflow that must drain first also waits for the space bell.
  const bool drains = pair.out->waits_to_drain();
  if (drains) pair.connection->arm(Bell::space);
  const State before = pair.state;
  const bool found = serve(pair);
  if (pair.state != before) return false;
  if (!found && (!drains || pair.out->waits_to_drain()) && !pair.gone) return true;
  pair.connection->disarm(Bell::data);
  return false;
}

bool ProgressEngine::arm_all() noexcept {
  auto& active = bells_.active();
  while (!active.empty()) {
    Pair& pair = *active.front();
    if (!arm(pair)) return false;
    bells_.set_idle(pair);
  }
  write_interest_.arm();
  return !write_interest_.check_all();
}

/// Pairs with unread messages stay active, but their peers' grants must end a sleep.
void ProgressEngine::arm_active() noexcept {
  for (Pair* pair : bells_.active()) {
    pair->connection->arm(Bell::data);
    if (pair->out->waits_to_drain()) pair->connection->arm(Bell::space);
  }
  write_interest_.arm();
}

void ProgressEngine::arm_unless_few(Pair& pair) noexcept {
  if (bells_.active().size() > kAlwaysActive && arm(pair)) bells_.set_idle(pair);
}

void ProgressEngine::reactivate(std::size_t count) noexcept {
  auto& idle = bells_.idle();
  for (std::size_t left = std::min({count, kAlwaysActive, idle.size()}); left > 0; --left) {
    Pair& pair = *idle.back();
    const unsigned idle_looks = pair.idle_looks;
    if (!pair.is_open() || idle_looks > kLooksBeforeIdle) return;
    pair.connection->disarm(Bell::data);
    bells_.activate(pair);
    pair.idle_looks = idle_looks;
  }
}

}  // namespace wherry::mailbox
