// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/service.hpp"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include <wherry/error.hpp>

#include "base/fork_generation.hpp"
#include "base/log.hpp"
#include "base/refused_call.hpp"
#include "fabric/ofi/link.hpp"

namespace wherry::fabric::ofi {
namespace {

/// Limits the delay if a provider loses a wake-up.
constexpr int kLongestSleepMs = 1000;

/// While one exists, threads that this thread starts have all signals blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

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
    // Signals must go to the program's threads, not to the service's thread or those that libfabric starts.
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

void Service::watch(int descriptor, std::shared_ptr<Served> served) {
  add_to_epoll(descriptor, EPOLLIN | EPOLLRDHUP);
  watched_[descriptor] = std::move(served);
}

void Service::unwatch(int descriptor) noexcept {
  if (watched_.erase(descriptor) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void Service::run() {
  int timeout = 0;
  for (;;) {
    std::array<epoll_event, 64> events;
    const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout);
    const std::lock_guard lock(mutex_);
    bool more = false;
    for (const auto& event : std::span(events).first(static_cast<std::size_t>(std::max(ready, 0)))) {
      more = serve(event.data.fd) || more;
    }
    if (ready <= 0 || nudge_.silence()) more = look_at_all() || more;
    more = serve_news() || more;
    timeout = more ? 0 : kLongestSleepMs;
  }
}

bool Service::serve(int descriptor) {
  const auto found = watched_.find(descriptor);
  if (found == watched_.end()) return false;
  const auto served = found->second;
  return served->serve(descriptor);
}

bool Service::look_at_all() {
  bool more = false;
  const auto watched = watched_;
  for (const auto& [descriptor, served] : watched) more = served->look() || more;
  return more;
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
