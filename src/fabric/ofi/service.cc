// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/service.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include <wherry/error.hpp>

#include "base/fork_generation.hpp"
#include "base/log.hpp"
#include "base/refused_call.hpp"
#include "fabric/ofi/link.hpp"
#include "fabric/ofi/signals_blocked.hpp"

namespace wherry::fabric::ofi {
namespace {

/// Limits the delay if a provider loses a wake-up.
constexpr std::chrono::milliseconds kLookInterval{1000};
/// Descriptors whose provider is driven in each look while nothing happens: thousands of idle connections take turns.
constexpr int kDrivenEach = 32;
constexpr Service::Clock::time_point kNow{};
constexpr std::uint32_t kReports = EPOLLIN | EPOLLRDHUP;

}  // namespace

/// Makes the service of one process. A forked child uses a maker of its own, because a thread of the parent may hold
/// the mutex that the child has a copy of.
struct Service::Maker {
  explicit Maker(std::uint64_t number) : generation(number) {}

  const std::uint64_t generation;
  std::mutex mutex;
  Service* service = nullptr;
};

Service::Maker& Service::maker() {
  static constinit std::atomic<Maker*> current{nullptr};
  Maker* known = current.load(std::memory_order_acquire);  // MAKER
  while (known == nullptr || known->generation != fork_generation()) {
    auto fresh = std::make_unique<Maker>(fork_generation());
    // MAKER: this one, or that of a thread that was first.
    if (current.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  }
  return *known;
}

Service& Service::instance() {
  Maker& made = maker();
  const std::lock_guard lock(made.mutex);
  if (made.service == nullptr) {
    // For the service's thread, and those that libfabric starts.
    const SignalsBlocked blocked;
    made.service = new Service;
  }
  return *made.service;
}

Service::Service() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) throw Error(errno, "start the network's service", "", advice_on(errno, "epoll_create1"));
  add_to_epoll(domain_.descriptor(), EPOLLIN);
  add_to_epoll(nudge_.descriptor(), EPOLLIN);
  std::thread([this] { run(); }).detach();
}

void Service::add_to_epoll(int descriptor, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = descriptor}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    throw Error(errno, "watch a connection", "", advice_on(errno, "epoll_ctl"));
  }
}

void Service::nudge() noexcept {
  nudged_.store(true, std::memory_order_relaxed);  // the descriptor orders it
  nudge_.notify();
}

void Service::watch(int descriptor, std::shared_ptr<Served> served) {
  add_to_epoll(descriptor, kReports);
  watched_[descriptor] = std::move(served);
}

void Service::unwatch(int descriptor) noexcept {
  left_alone_.erase(descriptor);
  if (watched_.erase(descriptor) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void Service::leave_alone(int descriptor, Clock::time_point until) {
  if (!watched_.contains(descriptor)) return;
  // Level-triggered, it would keep epoll from sleeping.
  if (left_alone_.insert_or_assign(descriptor, until).second) report(descriptor, false);
}

void Service::resume(int descriptor) {
  {
    const std::lock_guard lock(resumed_mutex_);
    resumed_.push_back(descriptor);
  }
  nudge_.notify();
}

void Service::report(int descriptor, bool on) const noexcept {
  epoll_event event{.events = on ? kReports : 0, .data = {.fd = descriptor}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void Service::run() {
  bool more = true;
  int timeout = 0;
  for (;;) {
    std::array<epoll_event, 64> events;
    const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout);
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    const bool drives = more && ready <= 0;
    more = false;
    for (const auto& event : std::span(events).first(static_cast<std::size_t>(std::max(ready, 0)))) {
      is_called_ = is_called_ || event.data.fd == domain_.descriptor();
      more = serve(event.data.fd) || more;
    }
    more = serve_again(now) || more;
    nudge_.silence();
    const bool is_late = now >= next_look_;
    if (nudged_.exchange(false, std::memory_order_relaxed) || drives) {
      more = look_at_all(true) || more;
      next_look_ = now + kLookInterval;
    } else if (is_late) {
      more = look_at_all(false) || more;
      next_look_ = now + kLookInterval;
    }
    const bool more_news = serve_news();
    if (is_late && is_called_ && !more_news) end_strangers();
    more = more_news || more;
    timeout = more ? 0 : sleep_ms(Clock::now());
  }
}

/// Until the next look at everything, or until a descriptor need not be ignored any longer.
int Service::sleep_ms(Clock::time_point now) const {
  auto until = next_look_;
  for (const auto& [descriptor, time] : left_alone_) until = std::min(until, time);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), kLookInterval).count());
}

bool Service::serve(int descriptor) {
  const auto found = watched_.find(descriptor);
  if (found == watched_.end()) return false;
  const auto served = found->second;
  return served->serve(descriptor);
}

/// Serves the descriptors that need not be ignored any longer.
bool Service::serve_again(Clock::time_point now) {
  std::vector<int> due;
  {
    const std::lock_guard lock(resumed_mutex_);
    due.swap(resumed_);
  }
  std::erase_if(due, [this](int descriptor) { return !left_alone_.contains(descriptor); });
  for (const auto& [descriptor, until] : left_alone_) {
    if (until <= now) due.push_back(descriptor);
  }
  bool more = false;
  for (const int descriptor : due) {
    const auto left = left_alone_.find(descriptor);
    if (left == left_alone_.end()) continue;
    left->second = kNow;
    more = serve(descriptor) || more;
    // Unless serving it has extended that, or has ended the connection.
    if (const auto still = left_alone_.find(descriptor); still != left_alone_.end() && still->second == kNow) {
      left_alone_.erase(still);
      report(descriptor, true);
    }
  }
  return more;
}

/// Without `drives`, the providers of some descriptors are driven, in turns.
bool Service::look_at_all(bool drives) {
  bool more = false;
  int driven = 0;
  if (watched_.lower_bound(next_driven_) == watched_.end()) next_driven_ = 0;
  for (auto one = watched_.begin(); one != watched_.end();) {
    const auto [descriptor, served] = *one;
    const bool its_turn = descriptor >= next_driven_ && driven < kDrivenEach;
    if (its_turn) ++driven;
    more = served->look(drives || its_turn) || more;
    one = watched_.upper_bound(descriptor);  // the look may have ended connections
    if (its_turn) next_driven_ = descriptor + 1;
  }
  return more;
}

/// Ends the connections to data ports that begin a request and do not end it. A request that is complete has become an
/// endpoint, or was refused.
void Service::end_strangers() {
  AddressTexts peers;
  for (const auto& [context, link] : links_) {
    if (!link->add_data_peer(peers)) return;
  }
  is_called_ = domain_.end_strangers(peers);
}

/// Handles events of endpoints. Returns whether there may be more.
bool Service::serve_news() {
  constexpr int kMost = 64;
  for (int i = 0; i < kMost; ++i) {
    auto news = domain_.read();
    if (!news) return !domain_.may_sleep();
    try {
      dispatch(std::move(*news));
    } catch (const Error& error) {
      log::write(log::Level::error, std::string("ofi: a data endpoint: ") + error.what());
    }
  }
  return true;
}

void Service::dispatch(Domain::News news) {
  if (news.kind == Domain::News::Kind::knock) {
    const auto expected = expected_.find(news.knock->token());
    if (expected == expected_.end()) return;
    const auto link = expected->second;
    expected_.erase(expected);
    link->accept(*this, std::move(*news.knock));
    return;
  }
  const auto known = links_.find(news.context);
  if (known == links_.end()) return;
  const auto link = known->second;
  if (news.kind == Domain::News::Kind::connected) {
    link->on_connected();
  } else {
    link->on_end(news.error);
  }
}

}  // namespace wherry::fabric::ofi
