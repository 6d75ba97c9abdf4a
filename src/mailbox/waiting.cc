// SPDX-License-Identifier: Apache-2.0
// Looking at the pairs that talk, asking the kernel for the others, and sleeping.
//
// No wake-up is lost as long as a bell that was used up makes its pair active, and the mailbox sleeps only while every
// active pair was armed and looked at after that.
#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "mailbox/impl.hpp"

namespace wherry {
namespace {

using fabric::Bell;
using mailbox::kLooksInVain;
using mailbox::Source;

/// A program that polls finds that many pairs without asking the kernel, however long they are quiet.
constexpr std::size_t kAlwaysActive = 8;

/// While pairs are active the kernel is asked for others this often; the clock is looked at after so many looks.
constexpr std::chrono::microseconds kAskInterval{20};
/// Added while no pair is quiet: newcomers and deaths are in no hurry, and the call takes as long as a short message.
constexpr std::chrono::microseconds kNoneIsQuiet{180};
constexpr unsigned kLooksPerClock = 32;

}  // namespace

/// Looks at the pair's words, and answers them. True: there is something for the user.
bool Mailbox::Impl::serve(Pair& pair) noexcept {
  // What was published before a death or the end comes first, so each is looked at before the section is.
  const bool gone = pair.gone;
  const std::uint64_t finished = pair.in->finished();
  if (pair.out->grant_waits()) (void)pair.out->adopt();
  pair.out->end_overflow();
  const bool piece = pair.in->waiting();
  if (pair.in->take_agreement()) agreed(pair);
  if (pair.in->broken() || pair.out->broken()) return lose(pair, EPROTO);
  if (piece || pair.early_received != nullptr) {
    pair.vain = 0;
    return true;
  }
  if (finished != 0) return lose(pair, pair.in->ending(finished));
  if (gone) return end_of_gone(pair);
  ++pair.vain;
  return check_room(pair);
}

/// A connection that ends before it was granted anything gave way to the peer's own, which is on its way.
bool Mailbox::Impl::end_of_gone(Pair& pair) noexcept {
  if (!pair.initiated || pair.out->capacity() != 0) return lose(pair, error_of_gone(pair));
  if (!give_up(pair)) return true;
  pair.mailbox = 0;
  retry_later(pair);
  return false;
}

bool Mailbox::Impl::serve_active() noexcept {
  bool any = false;
  auto& active = bells_.active();
  for (auto it = active.begin(); it != active.end();) {
    Pair& pair = **it++;
    any |= serve(pair);
  }
  for (std::size_t i = wanting_.size(); i > 0; --i) {
    if (i <= wanting_.size()) any |= check_room(*wanting_[i - 1]);
  }
  return any;
}

bool Mailbox::Impl::news(News wanted) const noexcept {
  if (interrupted_.load(std::memory_order_relaxed) || !losses_.empty() || !early_.empty()) return true;
  return wanted == News::all && !writable_.empty();
}

bool Mailbox::Impl::wait(const Timeout& timeout) noexcept {
  drop_told();
  return told(wait_for(News::all, stream::deadline_of(timeout)));
}

bool Mailbox::Impl::sleep(const Timeout& timeout) noexcept {
  drop_told();
  const fabric::Deadline deadline = stream::deadline_of(timeout);
  if (asking_is_due(1)) ask();
  while (true) {
    if (serve_active() || news(News::all)) return told(true);
    const std::size_t active = bells_.active().size();
    if (!arm_all()) continue;
    hush();
    if (news(News::all)) return told(true);
    if (stream::has_passed(deadline)) return told(false);
    doze(deadline);
    if (woken_ != nullptr) look_again_at(active);
  }
}

/// At the pairs that were armed last, so many, as far as they were not quiet before: their peers need not ring, and the
/// kernel need not be asked.
void Mailbox::Impl::look_again_at(std::size_t armed) noexcept {
  auto& idle = bells_.idle();
  for (std::size_t left = std::min({armed, kAlwaysActive, idle.size()}); left > 0; --left) {
    Pair& pair = *idle.back();
    const unsigned vain = pair.vain;
    if (!pair.is_open() || vain > kLooksInVain) return;
    pair.connection->disarm(Bell::data);
    bells_.activate(pair);
    pair.vain = vain;
  }
}

/// Room that a wait has told of is told of once.
void Mailbox::Impl::drop_told() noexcept {
  writable_.erase(writable_.begin(), writable_.begin() + static_cast<std::ptrdiff_t>(told_writable_));
  told_writable_ = 0;
}

bool Mailbox::Impl::told(bool found) noexcept {
  told_writable_ = writable_.size();
  show();
  return interrupted_.exchange(false, std::memory_order_relaxed) || found;
}

bool Mailbox::Impl::wait_for(News wanted, const fabric::Deadline& deadline) noexcept {
  if (asking_is_due(1)) ask();
  const auto found = [&] {
    const bool served = serve_active();
    return news(wanted) || served;
  };
  while (true) {
    if (found() || spin(wanted, deadline)) return true;
    ask();
    if (found()) return true;
    if (!arm_all()) continue;
    hush();
    if (news(wanted)) return true;
    if (stream::has_passed(deadline)) return false;
    doze(deadline);
    if (woken_ != nullptr && woken_->connection != nullptr) spin_.learn(*woken_->connection, Bell::data);
  }
}

/// Looks at the active pairs for the spin budget. True: there is something.
bool Mailbox::Impl::spin(News wanted, const fabric::Deadline& deadline) noexcept {
  if (bells_.active().empty()) return false;
  const auto ready = [&] {
    if (asking_is_due(static_cast<unsigned>(bells_.active().size()))) ask();
    const bool served = serve_active();
    return news(wanted) || served;
  };
  return spin_.look(ready, deadline);
}

bool Mailbox::Impl::progress() noexcept {
  drop_told();
  if (nested_ || asking_is_due(8)) ask();
  const bool served = serve_active();
  if (news(News::all) || served) return told(true);
  if (!nested_) return false;
  if (!arm_all()) return told(true);
  hush();
  return false;
}

/// Every so many looks, and not sooner than an interval after the last: pairs that are quiet, newcomers, deaths.
bool Mailbox::Impl::asking_is_due(unsigned looks) noexcept {
  looks_ += looks;
  if (looks_ < kLooksPerClock) return false;
  looks_ = 0;
  const bool none_is_quiet = bells_.active().size() == living_;
  return stream::SteadyClock::now() >= next_ask_ + (none_is_quiet ? kNoneIsQuiet : kNoneIsQuiet.zero());
}

void Mailbox::Impl::ask() noexcept {
  const Time now = stream::SteadyClock::now();
  next_ask_ = now + kAskInterval;
  std::array<Source*, 64> events;
  bool refused = false;
  for (Source* source : bells_.take(events, refused)) on_event(*source);
  if (refused) suspect_all();
  retry_all(now);
}

void Mailbox::Impl::on_event(Source& source) noexcept {
  Pair* pair = source.pair;
  switch (source.kind) {
    case Source::Kind::interruption:
      if (!shown_) bells_.silence_own();
      return;
    case Source::Kind::port:
      return port_rests_ ? void() : accept_all();
    case Source::Kind::attempt:
      return finish_attempt(*pair);
    case Source::Kind::data:
    case Source::Kind::space:
      break;
  }
  // An earlier event may have ended it.
  if (!pair->is_open()) return;
  const Bell bell = source.kind == Source::Kind::data ? Bell::data : Bell::space;
  if (!pair->connection->silence(bell) && !pair->gone && pair->connection->peer_gone()) {
    pair->gone = true;
    bells_.stop_watching(*pair);
  }
  if (bell == Bell::data) woken_ = pair;
  bells_.activate(*pair);
}

/// Where the kernel refuses epoll_wait (a seccomp filter): whatever is waited for may have come.
void Mailbox::Impl::suspect_all() noexcept {
  if (listener_ != nullptr) accept_all();
  for (const auto& pair : pairs_) {
    if (pair == nullptr) continue;
    if (pair->attempt != nullptr) finish_attempt(*pair);
    if (!pair->is_open()) continue;
    for (const Bell bell : fabric::kBells) (void)pair->connection->silence(bell);
    pair->gone = pair->gone || pair->connection->peer_gone();
    bells_.activate(*pair);
  }
}

/// False: there is something, and the bell need not be rung.
bool Mailbox::Impl::arm(Pair& pair) noexcept {
  pair.in->return_credit();
  pair.connection->arm(Bell::data);
  // A section that must drain before it changes is waited for as room is.
  const bool drains = pair.out->grant_waits() && !pair.out->adopt();
  if (drains) pair.connection->arm(Bell::space);
  const State before = pair.state;
  const bool found = serve(pair);
  if (pair.state != before) return false;
  if (!found && (!drains || pair.out->grant_waits()) && !pair.gone) return true;
  pair.connection->disarm(Bell::data);
  return false;
}

/// Makes every pair idle. False: one cannot be, it has something.
bool Mailbox::Impl::arm_all() noexcept {
  auto& active = bells_.active();
  while (!active.empty()) {
    Pair& pair = *active.front();
    if (!arm(pair)) return false;
    bells_.set_idle(pair);
  }
  arm_for_room();
  return !std::any_of(wanting_.begin(), wanting_.end(), [&](Pair* pair) { return check_room(*pair); });
}

void Mailbox::Impl::arm_for_room() noexcept {
  for (Pair* pair : wanting_) {
    if (pair->is_open()) pair->connection->arm(Bell::space);
  }
}

/// A pair that has been quiet for kLooksInVain is armed, unless so few are active that it may stay.
void Mailbox::Impl::rest_if_quiet(Pair& pair) noexcept {
  if (bells_.active().size() <= kAlwaysActive) return;
  if (arm(pair)) bells_.set_idle(pair);
}

void Mailbox::Impl::doze(fabric::Deadline deadline) noexcept {
  if (waiting_ != 0 || port_rests_) deadline = deadline ? std::min(*deadline, next_retry_) : next_retry_;
  woken_ = nullptr;
  (void)bells_.sleep(deadline);
  ask();
}

void Mailbox::Impl::interrupt() noexcept {
  // outside: the flag is all that there is to see; the ring that follows takes it to a thread that sleeps.
  interrupted_.store(true, std::memory_order_release);
  bells_.notify_self();
}

int Mailbox::Impl::descriptor() noexcept {
  nested_ = true;
  show();
  return bells_.descriptor();
}

/// The descriptor must be readable while a pair is active: its bell is not armed.
void Mailbox::Impl::show() noexcept {
  if (!nested_ || shown_ || (bells_.active().empty() && !news(News::all))) return;
  shown_ = true;
  bells_.notify_self();
}

void Mailbox::Impl::hush() noexcept {
  if (!std::exchange(shown_, false)) return;
  bells_.silence_own();
}

}  // namespace wherry
