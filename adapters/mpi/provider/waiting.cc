// SPDX-License-Identifier: Apache-2.0
#include "waiting.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <utility>

#include "arch/ticks.hpp"

namespace wherry::mpi {
namespace {

// If kCallsPerPass calls take longer than this, the program does something else between them.
constexpr std::uint64_t kTogether = 500'000;  // ticks: 100 to 500 us
// Polls without success before the first sleep: a few times as long as a wake-up takes.
constexpr std::int64_t kLooks = 8000;
constexpr std::int64_t kCallsPerPass = 10;
// After this many idle calls the wait is long, and each call reads the clock. A pause between two of them means that
// the program did something else and now begins another wait: with Open MPI's windows no message separates the two.
constexpr std::int64_t kCallsUntimed = 100;
constexpr std::uint64_t kPause = 20'000;  // ticks: 4 to 20 us
// Polls of a call that follows an idle one. What an MPI library does between two calls takes as long as several polls,
// and delays the detection of a message by as much.
constexpr int kLooksPerCall = 4;
// The same if that call ended just now and the program has one thread: it does nothing else. Between two calls MPICH
// checks everything that it knows, for as long as 20 polls take. The time is a limit with many peers, and far below
// kPause.
constexpr int kLooksPerPromptCall = 32;
constexpr std::uint64_t kPrompt = 4000;         // ticks: 0.8 to 4 us
constexpr std::uint64_t kPromptLooking = 6000;  // ticks: 1.2 to 6 us
// If oversubscribed, the limit is not polls but the processor time that polls and yields have used: others lose as
// much. A sleep and the wake-up take 20 to 40 us of two processes. That much is spent first, so a wait costs at most
// twice its minimum.
constexpr std::int64_t kLeastNs = 30'000;
// But the scheduler favours a process that has slept over those that have yielded: it gets the processor back from its
// yields until the others are even. They wait for it meanwhile and sleep in turn, and every exchange becomes a chain of
// sleeps. So the first limit is what a scheduler may favour one process by, a time slice. It is halved if the first
// sleep of a wait lasts its whole time, and doubled if it does not.
constexpr std::int64_t kMostNs = 4'000'000;
// If a yield lets no other process run, a process that polls keeps others from its processor, and may do so for
// kLeastNs. With less than two processes per processor it polls for twice what a wake-up takes, as long as that ends
// waits. Otherwise a sleeper is woken only after its peer sleeps in turn, and one sleep causes the next, message after
// message.
constexpr std::int64_t kMostPollingNs = 80'000;
// Calls without a message before the first yield, with less than two processes per processor. A peer on another
// processor answers during them, and a yield takes as long as a few of them.
constexpr std::int64_t kLeastCallsBeforeYield = 1;
constexpr std::int64_t kMostCallsBeforeYield = 8;
// Idle calls per look at the clock of processor time, which is a system call. Most waits are over before the first.
constexpr std::int64_t kLooksPerClock = 8;
// Processor time that a waiting thread uses between two looks at most. The time of other processes in between does not
// count: if oversubscribed, a yield may take many milliseconds. An interrupt counts.
constexpr std::int64_t kTogetherNs = 10'000;
constexpr std::int64_t kTogetherRestedNs = 20'000;  // for one look, after a rest
constexpr std::chrono::milliseconds kRest{1};
// Two waits in a row that end without a message stop the sleeps, until messages have ended eight. After more than
// kFewRests sleeps the last one has cost little, and the end of the wait is not counted.
constexpr int kMostDoubt = 10;
constexpr int kNoSleep = 2;
constexpr int kFewRests = 16;

std::int64_t used_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

// With "autogroup" Linux schedules sessions, not their processes. MPICH's launcher makes a session for each rank: the
// yield of such a process lets no other rank run.
bool scheduler_honours_yields() {
  if (::getsid(0) != ::getpid()) return true;
  std::ifstream file("/proc/sys/kernel/sched_autogroup_enabled");
  int enabled = 0;
  return !(file >> enabled) || enabled == 0;
}

}  // namespace

Waiting::Waiting(DomainLock& lock) : Waiting(lock, scheduler_honours_yields()) {}

Waiting::Waiting(DomainLock& lock, bool yields_are_effective)
    : lock_(lock),
      yields_are_effective_(yields_are_effective),
      limit_ns_(kMostNs),
      polling_effort_(kLeastNs, kMostPollingNs),
      before_yield_effort_(kLeastCallsBeforeYield, kMostCallsBeforeYield) {}

void Waiting::add(Messenger& messenger) {
  if (std::ranges::find(messengers_, &messenger) == messengers_.end()) messengers_.push_back(&messenger);
}

void Waiting::remove(Messenger& messenger) { std::erase(messengers_, &messenger); }

bool Waiting::progress() noexcept {
  bool moved = false;
  for (Messenger* messenger : messengers_) moved |= messenger->progress();
  return moved;
}

bool Waiting::may_sleep() noexcept {
  bool may = true;
  for (Messenger* messenger : messengers_) may &= messenger->may_sleep();
  return may;
}

bool Waiting::is_oversubscribed() const {
  return std::ranges::any_of(messengers_, [&](const Messenger* each) { return each->is_oversubscribed(); });
}

std::int64_t Waiting::limit_ns() const {
  if (yields_are_effective_) return limit_ns_;
  return is_crowded() ? kLeastNs : polling_effort_.limit();
}

bool Waiting::is_crowded() const {
  return std::ranges::any_of(messengers_, [](const Messenger* each) { return each->is_crowded(); });
}

bool Waiting::look() noexcept {
  const bool looks_once = is_oversubscribed() ? calls_before_yield_ == 0 || idle_calls_ > 0 : idle_calls_ == 0;
  const bool found = looks_once ? progress() : look_often();
  if (!found) looked_ = arch::ticks();
  return found;
}

bool Waiting::look_often() noexcept {
  const std::uint64_t begin = arch::ticks();
  const bool is_prompt = !lock_.is_used() && begin - looked_ < kPrompt;
  const int most = is_prompt ? kLooksPerPromptCall : kLooksPerCall;
  for (int looks = 0; looks < most; looks += kLooksPerCall) {
    if (looks > 0 && arch::ticks() - begin > kPromptLooking) return false;
    for (int i = 0; i < kLooksPerCall; ++i) {
      if (progress()) return true;
    }
    looks_ += kLooksPerCall;
  }
  return false;
}

// An interrupt looks like a pause, and occurs often enough if nothing sleeps. So a pause does not prolong the doubt.
int Waiting::doubt_after(End how, int doubt) noexcept {
  if (how == End::message) return std::max(doubt - 1, 0);
  if (how == End::pause && doubt >= kNoSleep) return doubt;
  return doubt == 0 ? 1 : kMostDoubt;
}

void Waiting::end_wait(End how) noexcept {
  const bool tells = rests_ > 0 && (how == End::message || rests_ <= kFewRests || doubt_ >= kNoSleep);
  if (tells) doubt_ = doubt_after(how, doubt_);
  if (how == End::message) learn_from_message();
  calls_before_yield_ = 0;
  waited_ns_ = 0;
  looks_ = 0;
  idle_calls_ = 0;
  rests_ = 0;
}

// The processor time before the message was well spent, and raises the limits. Time that every wait may use does not
// count.
void Waiting::learn_from_message() noexcept {
  if (idle_calls_ == 0) {
    if (calls_before_yield_ > 0) before_yield_effort_.succeeded(calls_before_yield_);
  } else if (rests_ == 0 && waited_ns_ > kLeastNs) {
    polling_effort_.succeeded(waited_ns_);
  }
}

bool Waiting::rest() noexcept {
  if (activity_ != lock_.activity()) end_wait(End::activity);
  activity_ = lock_.activity();
  return is_oversubscribed() ? rest_oversubscribed() : rest_alone();
}

bool Waiting::rest_alone() noexcept {
  ++idle_calls_;
  if (idle_calls_ < kCallsUntimed && idle_calls_ % kCallsPerPass != 0) return false;
  const std::uint64_t now = arch::ticks();
  const bool pauses = now - std::exchange(last_, now) > (idle_calls_ > kCallsUntimed ? kPause : kTogether);
  if (pauses && (rests_ == 0 || !only_waits())) end_wait(End::pause);
  if (idle_calls_ % kCallsPerPass != 0) return false;
  if (looks_ < kLooks) {
    lock_.pass_on();
    return false;
  }
  rest_once(awaits_message());
  idle_calls_ -= 1;  // the next idle call sleeps again
  last_ = arch::ticks();
  return true;
}

bool Waiting::rest_oversubscribed() noexcept {
  if (may_be_answered()) {
    ++calls_before_yield_;
    lock_.pass_on();
    return false;
  }
  const bool looks_at_clock = ++idle_calls_ % kLooksPerClock == 0 || rests_ > 0;
  if (looks_at_clock && !only_waits()) {
    end_wait(End::pause);
    return false;
  }
  const bool awaits = awaits_message();
  if (rests_ == 0 && (!looks_at_clock || waited_ns_ < limit_ns())) {
    yield(awaits);
  } else {
    sleep_oversubscribed(awaits);
  }
  return true;
}

// Yields once, or, if only a message can help the program, until one may have arrived or the clock is due. About two of
// five yields end before the message is there. What the program and progress() touch between two yields has left the
// caches meanwhile, so such a call costs as much as a message.
void Waiting::yield(bool awaits) noexcept {
  lock_.yield();
  if (!awaits || lock_.is_used() || messengers_.size() != 1) return;
  while (!messengers_.front()->has_news() && (idle_calls_ + 1) % kLooksPerClock != 0) {
    ++idle_calls_;
    lock_.yield();
  }
}

bool Waiting::may_be_answered() noexcept {
  if (idle_calls_ > 0 || is_crowded()) return false;
  if (calls_before_yield_ < before_yield_effort_.limit()) return true;
  before_yield_effort_.failed();
  return false;
}

bool Waiting::only_waits() noexcept {
  const std::int64_t now = used_ns();
  const std::int64_t used = now - std::exchange(looked_ns_, now);
  if (idle_calls_ == kLooksPerClock) {
    waited_ns_ = 0;
    return true;
  }
  waited_ns_ += used;
  return used <= (rests_ > 0 ? kTogetherRestedNs : kLooksPerClock * kTogetherNs);
}

void Waiting::sleep_oversubscribed(bool awaits) noexcept {
  const bool is_first = rests_ == 0;
  if (is_first) polling_effort_.failed();
  const bool found = rest_once(awaits);
  if (is_first) limit_ns_ = found ? std::min(2 * limit_ns_, kMostNs) : std::max(limit_ns_ / 2, kLeastNs);
}

bool Waiting::awaits_message() noexcept {
  return std::ranges::any_of(messengers_, [](Messenger* each) { return each->awaits_message(); });
}

// Sleeps only if a message can help the program: nothing else ends the sleep early.
bool Waiting::rest_once(bool awaits) noexcept {
  ++rests_;
  bool found = false;
  if (awaits && doubt_ < kNoSleep) {
    found = sleep(kRest, false);
  } else {
    lock_.yield();
  }
  looked_ns_ = used_ns();
  return found;
}

void Waiting::sleep_until(std::optional<std::chrono::steady_clock::time_point> deadline) noexcept {
  std::chrono::nanoseconds most = std::chrono::seconds(1);
  if (deadline) most = std::clamp<std::chrono::nanoseconds>(*deadline - std::chrono::steady_clock::now(), {}, most);
  sleep(most, true);
}

// With several mailboxes the sleep is short, because it watches only the first.
bool Waiting::sleep(std::chrono::nanoseconds most, bool looks) noexcept {
  if (messengers_.empty()) {
    sched_yield();
    return false;
  }
  if (messengers_.size() > 1) most = std::min<std::chrono::nanoseconds>(most, std::chrono::microseconds(100));
  return lock_.sleep(*messengers_.front(), std::chrono::ceil<std::chrono::milliseconds>(most), looks);
}

void Waiting::interrupt() noexcept {
  for (Messenger* messenger : messengers_) messenger->interrupt();
}

}  // namespace wherry::mpi
