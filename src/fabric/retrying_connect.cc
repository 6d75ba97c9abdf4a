// SPDX-License-Identifier: Apache-2.0
#include "fabric/retrying_connect.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <cstdio>
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

[[noreturn]] void give_up(const Error& refusal, const RetrySchedule& schedule) {
  throw Error(ECONNREFUSED, refusal.operation(), refusal.address(),
              refusal.advice() + "; waited " + seconds_text(schedule.waited()));
}

void log_waiting(const Error& refusal) {
  if (!log::enabled(log::Level::info)) return;
  log::write(log::Level::info, "waiting for a listener at " + refusal.address() + ": " + refusal.advice());
}

class RetryingConnect final : public Connecting {
 public:
  /// For a first attempt, made when `schedule` began, that was refused with `refusal`.
  RetryingConnect(Fabric& fabric, const Address& address, const Offer& offer, const RetryUntil& until,
                  const RetrySchedule& schedule, const Error& refusal)
      : fabric_(fabric),
        address_(address),
        offer_(offer),
        until_(until),
        schedule_(schedule),
        refusal_(refusal),
        queue_full_(is_full(refusal)),
        timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!timer_.valid()) fail("timerfd_create");
    epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.valid()) fail("epoll_create1");
    watch(timer_.get());
    set_timer();
  }

  std::unique_ptr<Connection> try_finish() override {
    if (origin_.inherited()) {
      throw Error(EBADF, "connect to", address_.to_string(),
                  "this attempt belongs to the process that started it; connect again after a fork");
    }
    if (attempt_ == nullptr && schedule_.is_due()) repeat();
    return attempt_ == nullptr ? nullptr : attempt_->try_finish();
  }

  [[nodiscard]] int descriptor() const override { return epoll_.get(); }
  [[nodiscard]] std::span<std::byte> segment() const override {
    return attempt_ == nullptr ? std::span<std::byte>{} : attempt_->segment();
  }
  [[nodiscard]] bool waits_for_listener() const override { return attempt_ == nullptr; }

 private:
  void repeat() {
    std::unique_ptr<Connecting> attempt;
    try {
      attempt = fabric_.connect(address_, offer_);
    } catch (const Error& refusal) {
      if (!is_refusal(refusal)) throw;
      note(refusal);
      // The timer then stays expired, so the descriptor stays readable until the attempt is destroyed.
      if (!plan_next(schedule_, until_, queue_full_)) give_up(refusal_, schedule_);
      set_timer();
      return;
    }
    watch(attempt->descriptor());
    attempt_ = std::move(attempt);
    timer_.reset();
  }

  /// Remembers a refusal if its cause has changed. The first one of a cause is reported, because a fabric searches for
  /// advice at the first refusal, and then not again for a while.
  void note(const Error& refusal) {
    if (is_full(refusal) == queue_full_) return;
    refusal_ = refusal;
    queue_full_ = !queue_full_;
  }

  /// Sets the timer to the time of the next attempt. The descriptor is not readable until then.
  void set_timer() const {
    const auto at = std::chrono::duration_cast<std::chrono::nanoseconds>(schedule_.next().time_since_epoch()).count();
    const itimerspec time{.it_interval = {}, .it_value = {.tv_sec = at / 1'000'000'000, .tv_nsec = at % 1'000'000'000}};
    if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr) != 0) fail("timerfd_settime");
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
  Error refusal_;
  bool queue_full_;
  UniqueFd timer_;
  UniqueFd epoll_;
  std::unique_ptr<Connecting> attempt_;  ///< null: there is no listener yet
};

}  // namespace

std::unique_ptr<Connecting> start_connect(Fabric& fabric, const Address& address, const Offer& offer,
                                          const RetryUntil& until) {
  RetrySchedule schedule;
  try {
    return fabric.connect(address, offer);
  } catch (const Error& refusal) {
    if (!is_refusal(refusal)) throw;
    const auto started = schedule.next();
    if (!plan_next(schedule, until, is_full(refusal))) {
      const Deadline& limit = is_full(refusal) ? until.queue_full : until.nobody_listens;
      if (limit > started) give_up(refusal, schedule);  // this attempt took all the time
      throw;
    }
    log_waiting(refusal);
    return std::make_unique<RetryingConnect>(fabric, address, offer, until, schedule, refusal);
  }
}

std::unique_ptr<Connection> finish(Connecting& attempt, const Address& address, const Deadline& deadline) {
  bool in_time = true;
  while (true) {
    if (auto connection = attempt.try_finish()) return connection;
    if (!in_time) {
      throw Error(ETIMEDOUT, "connect to", address.to_string(),
                  attempt.waits_for_listener()
                      ? "nobody listens there yet; start the listener, or wait longer"
                      : "somebody listens there but did not accept in time; wait longer (WHERRY_CONNECT_TIMEOUT)");
    }
    // One last look after the deadline: an attempt that waits for a listener until then throws its refusal there.
    in_time = wait_until_readable(attempt.descriptor(), deadline);
  }
}

}  // namespace wherry::fabric
