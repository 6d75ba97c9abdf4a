// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/service.hpp"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
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

/// Bounds what a wake-up that a provider has lost may cost.
constexpr int kLongestSleepMs = 1000;

}  // namespace

Service& Service::instance() {
  struct Made {
    std::uint64_t generation;
    Service* service;
  };
  static std::mutex& making = *new std::mutex;
  static Made made{0, nullptr};
  const std::lock_guard lock(making);
  if (made.service == nullptr || made.generation != fork_generation()) {
    made.service = new Service;
    made.generation = fork_generation();
  }
  return *made.service;
}

Service::Service() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) throw Error(errno, "start the network's service", "", advice_on(errno, "epoll_create1"));
  add_to_epoll(domain_.descriptor(), EPOLLIN);
  add_to_epoll(nudge_.descriptor(), EPOLLIN);
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { run(); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
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

/// Returns whether there may be more.
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
