// SPDX-License-Identifier: Apache-2.0
#include "fabric/retrying_connect.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/fork_generation.hpp"
#include "base/log.hpp"
#include "base/refused_call.hpp"
#include "base/retry_schedule.hpp"
#include "base/unique_fd.hpp"
#include "fabric/wait_for_events.hpp"

namespace wherry::fabric {
namespace {

using std::chrono::steady_clock;

bool is_refusal(const Error& error) { return error.code().value() == ECONNREFUSED; }
bool is_full(const Error& refusal) { return dynamic_cast<const QueueFull*>(&refusal) != nullptr; }

/// The longest pause between attempts at a full queue, shorter than for a missing listener: a place in a full queue is
/// free only for microseconds. During a storm of other users' connectors a longer pause makes connecting take several
/// times as long.
constexpr steady_clock::duration kLongestPauseWhenFull = std::chrono::milliseconds(8);

bool plan_next(RetrySchedule& schedule, const RetryUntil& until, bool queue_full) {
  return queue_full ? schedule.plan_next(until.queue_full, kLongestPauseWhenFull)
                    : schedule.plan_next(until.nobody_listens);
}

/// "3 s", "0.25 s".
std::string seconds_text(steady_clock::duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), seconds < 10 ? "%.2g s" : "%.0f s", seconds);
  return text.data();
}

/// Throws the refusal, and how long the attempts took; unless only one attempt was wanted.
[[noreturn]] void give_up(const Error& refusal, const RetrySchedule& schedule, const Deadline& limit) {
  if (limit && *limit <= schedule.start()) throw Error(refusal);
  throw Error(ECONNREFUSED, refusal.operation(), refusal.address(),
              refusal.advice() + "; waited " + seconds_text(schedule.waited()));
}

void log_waiting(const Error& refusal) {
  if (!log::enabled(log::Level::info)) return;
  log::write(log::Level::info, "waiting for a listener at " + refusal.address() + ": " + refusal.advice());
}

class RetryingConnect final : public Connecting {
 public:
  /// After a first attempt that was refused; the next one is at schedule.next().
  RetryingConnect(Fabric& fabric, const Address& address, const Offer& offer, const RetryUntil& until,
                  const RetrySchedule& schedule, const Error& refusal)
      : RetryingConnect(fabric, address, offer, until, schedule) {
    note(refusal);
    set_timer(schedule_.next());
  }
  /// After a first attempt that waits for a listener.
  RetryingConnect(Fabric& fabric, const Address& address, const Offer& offer, const RetryUntil& until,
                  const RetrySchedule& schedule, std::unique_ptr<Connecting> attempt)
      : RetryingConnect(fabric, address, offer, until, schedule) {
    watch(attempt->descriptor());
    attempt_ = std::move(attempt);
  }

  std::unique_ptr<Connection> try_finish() override {
    if (origin_.inherited()) {
      throw Error(EBADF, "connect to", address_.to_string(),
                  "this attempt belongs to the process that started it; connect again after a fork");
    }
    try {
      if (attempt_ == nullptr && schedule_.is_due()) repeat();
      if (attempt_ != nullptr) {
        if (auto connection = attempt_->try_finish()) return connection;
      }
    } catch (const Error& refusal) {
      if (!is_refusal(refusal) || (attempt_ != nullptr && !attempt_->waits_for_listener())) throw;
      retry(refusal);
      return nullptr;
    }
    if (is_late()) give_up(*refusal_, schedule_, limit());
    return nullptr;
  }

  [[nodiscard]] int descriptor() const override { return epoll_.get(); }
  [[nodiscard]] std::span<std::byte> segment() const override {
    return attempt_ == nullptr ? std::span<std::byte>{} : attempt_->segment();
  }
  [[nodiscard]] bool waits_for_listener() const override {
    return attempt_ == nullptr || attempt_->waits_for_listener();
  }
  [[nodiscard]] std::string obstacle() const override {
    const bool was_refused = refusal_ && waits_for_listener();
    return was_refused ? "nobody listens there yet; start the listener, or wait longer" : attempt_->obstacle();
  }

 private:
  RetryingConnect(Fabric& fabric, const Address& address, const Offer& offer, const RetryUntil& until,
                  const RetrySchedule& schedule)
      : fabric_(fabric),
        address_(address),
        offer_(offer),
        until_(until),
        schedule_(schedule),
        timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!timer_.valid()) fail("timerfd_create");
    epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.valid()) fail("epoll_create1");
    watch(timer_.get());
  }

  void repeat() {
    auto attempt = fabric_.connect(address_, offer_);
    watch(attempt->descriptor());
    attempt_ = std::move(attempt);
    set_timer(limit());
  }

  /// Whether the deadline has passed while an attempt waits for a listener. The refusal of an earlier attempt is then
  /// the result. The first attempt has none, and ends by itself.
  [[nodiscard]] bool is_late() const {
    const bool is_over = refusal_ && limit() && steady_clock::now() >= *limit();
    return is_over && attempt_ != nullptr && attempt_->waits_for_listener();
  }

  /// Plans the next attempt. Throws the refusal if there is none: the descriptor then stays readable.
  void retry(const Error& refusal) {
    note(refusal);
    if (!plan_next(schedule_, until_, queue_full_)) {
      set_timer(steady_clock::time_point{});
      give_up(*refusal_, schedule_, limit());
    }
    if (attempt_ != nullptr) {
      // A forked child may hold its descriptor open, too: closing would not end the watch.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, attempt_->descriptor(), nullptr);
      attempt_.reset();
    }
    set_timer(schedule_.next());
  }

  /// Remembers a refusal if its cause has changed. The first one of a cause is reported, because a fabric searches for
  /// advice at the first refusal, and then not again for a while.
  void note(const Error& refusal) {
    if (refusal_ && is_full(refusal) == queue_full_) return;
    if (!refusal_) log_waiting(refusal);
    refusal_ = refusal;
    queue_full_ = is_full(refusal);
  }

  [[nodiscard]] const Deadline& limit() const { return queue_full_ ? until_.queue_full : until_.nobody_listens; }

  /// Makes the descriptor readable at that time, and not before unless the attempt does. Empty: only the attempt does.
  void set_timer(const Deadline& time) const {
    using std::chrono::nanoseconds;
    itimerspec spec{};
    if (time) {
      // 0 would disarm it.
      const auto at =
          std::max<std::int64_t>(1, std::chrono::duration_cast<nanoseconds>(time->time_since_epoch()).count());
      spec.it_value = {.tv_sec = at / 1'000'000'000, .tv_nsec = at % 1'000'000'000};
    }
    if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) != 0) fail("timerfd_settime");
  }

  void watch(int descriptor) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
  }

  [[noreturn]] void fail(const char* call) const {
    const int error = errno;
    throw Error(error, "wait for a listener at", address_.to_string(), advice_on(error, call));
  }

  Fabric& fabric_;
  const Address address_;
  const Offer offer_;
  const RetryUntil until_;
  const Origin origin_;
  RetrySchedule schedule_;
  std::optional<Error> refusal_;  ///< empty: no attempt was refused yet
  bool queue_full_ = false;       ///< the refusal's cause
  UniqueFd timer_;
  UniqueFd epoll_;
  std::unique_ptr<Connecting> attempt_;  ///< null: the next one is not due yet
};

}  // namespace

std::unique_ptr<Connecting> start_connect(Fabric& fabric, const Address& address, const Offer& offer,
                                          const RetryUntil& until) {
  RetrySchedule schedule;
  std::unique_ptr<Connecting> attempt;
  try {
    attempt = fabric.connect(address, offer);
  } catch (const Error& refusal) {
    if (!is_refusal(refusal)) throw;
    if (!plan_next(schedule, until, is_full(refusal))) {
      give_up(refusal, schedule, is_full(refusal) ? until.queue_full : until.nobody_listens);
    }
    return std::make_unique<RetryingConnect>(fabric, address, offer, until, schedule, refusal);
  }
  if (!attempt->waits_for_listener()) return attempt;
  return std::make_unique<RetryingConnect>(fabric, address, offer, until, schedule, std::move(attempt));
}

std::unique_ptr<Connection> finish(Connecting& attempt, const Address& address, const Deadline& deadline) {
  bool in_time = true;
  while (true) {
    if (auto connection = attempt.try_finish()) return connection;
    if (!in_time) {
      throw Error(ETIMEDOUT, "connect to", address.to_string(), attempt.obstacle());
    }
    // One last look after the deadline: an attempt that waits for a listener until then throws its refusal there.
    in_time = wait_until_readable(attempt.descriptor(), deadline);
  }
}

}  // namespace wherry::fabric
