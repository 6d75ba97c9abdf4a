// SPDX-License-Identifier: Apache-2.0
#include "mailbox/doorbells.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/not_cancelled.hpp"
#include "base/refused_call.hpp"

namespace wherry::mailbox {
namespace {

using fabric::Bell;

/// Most events taken by one call; the next call finds the others.
constexpr std::size_t kEvents = 64;

}  // namespace

Doorbells::Doorbells() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) throw Error(errno, "make a mailbox", "", advice_on(errno, "epoll_create1"));
  watch(own_.descriptor(), interruption_);
}

void Doorbells::watch(int descriptor, Source& source) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &source}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return;
  throw Error(errno, "watch a peer of a mailbox", "", advice_on(errno, "epoll_ctl"));
}

void Doorbells::unwatch(int descriptor) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

void Doorbells::join(Pair& pair) {
  const int data = pair.connection->descriptor(Bell::data);
  const int space = pair.connection->descriptor(Bell::space);
  ++version_;
  active_.push_back(&pair);
  pair.place = std::prev(active_.end());
  pair.active = true;
  try {
    watch(data, pair.data_source);
    watch(space, pair.space_source);
  } catch (...) {
    unwatch(data);
    active_.erase(pair.place);
    pair.active = false;
    throw;
  }
  signal_descriptor();
}

void Doorbells::leave(Pair& pair, bool unwatches) noexcept {
  if (unwatches) stop_watching(pair);
  ++version_;
  (pair.active ? active_ : idle_).erase(pair.place);
  pair.active = false;
  if (rung_ == &pair) rung_ = nullptr;
}

void Doorbells::stop_watching(Pair& pair) noexcept {
  for (const Bell bell : fabric::kBells) unwatch(pair.connection->descriptor(bell));
}

void Doorbells::activate(Pair& pair) noexcept {
  pair.idle_looks = 0;
  if (std::exchange(pair.active, true)) return;
  ++version_;
  active_.splice(active_.end(), idle_, pair.place);
}

void Doorbells::set_idle(Pair& pair) noexcept {
  if (!std::exchange(pair.active, false)) return;
  ++version_;
  idle_.splice(idle_.end(), active_, pair.place);
}

std::span<Source*> Doorbells::take(std::span<Source*> into, bool& refused) noexcept {
  const NotCancelled here;
  std::array<epoll_event, kEvents> events;
  const int most = static_cast<int>(std::min(events.size(), into.size()));
  const int count = ::epoll_wait(epoll_.get(), events.data(), most, 0);
  refused = count < 0 && errno != EINTR;
  const std::size_t taken = count < 0 ? 0 : static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < taken; ++i) into[i] = static_cast<Source*>(events[i].data.ptr);
  return into.first(taken);
}

bool Doorbells::sleep(const fabric::Deadline& deadline) noexcept {
  return fabric::wait_until_readable(epoll_.get(), deadline);
}

}  // namespace wherry::mailbox
