// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/pending.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <wherry/error.hpp>

#include "base/move_above_fd_setsize.hpp"
#include "base/refused_call.hpp"

namespace wherry::fabric::shm {
namespace {

/// Events that one look() fetches.
constexpr std::size_t kEvents = 64;

}  // namespace

PendingConnectors::PendingConnectors(std::string listener)
    : listener_(std::move(listener)), poller_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!poller_.valid()) throw Error(errno, "listen", listener_, advice_on(errno, "epoll_create1"));
}

void PendingConnectors::watch(int socket) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
  if (::epoll_ctl(poller_.get(), EPOLL_CTL_ADD, socket, &event) == 0) return;
  throw Error(errno, "listen", listener_, advice_on(errno, "epoll_ctl"));
}

void PendingConnectors::add(UniqueFd socket, Peer peer, std::chrono::milliseconds timeout) {
  socket = move_above_fd_setsize(std::move(socket));
  const int number = socket.get();
  watch(number);
  waiting_.push_back(
      {.socket = std::move(socket), .peer = std::move(peer), .give_up = Pending::Clock::now() + timeout});
  by_socket_[number] = std::prev(waiting_.end());
}

void PendingConnectors::look() {
  if (!ready_.empty()) return;
  std::array<epoll_event, kEvents> events;
  const int count = ::epoll_wait(poller_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) ready_.push_back(events[static_cast<std::size_t>(i)].data.fd);
  // If the kernel refuses epoll_wait (a seccomp filter), every connector may be readable.
  if (count >= 0 || errno == EINTR) return;
  for (const Pending& pending : waiting_) ready_.push_back(pending.socket.get());
}

Pending* PendingConnectors::next_ready() {
  while (!ready_.empty()) {
    const auto found = by_socket_.find(ready_.front());
    ready_.pop_front();
    if (found != by_socket_.end()) return &*found->second;
  }
  return nullptr;
}

void PendingConnectors::silence(Pending& pending) noexcept {
  pending.ended = true;
  ::epoll_ctl(poller_.get(), EPOLL_CTL_DEL, pending.socket.get(), nullptr);
}

Pending PendingConnectors::take(Pending& pending) {
  const auto found = by_socket_.find(pending.socket.get());
  Pending taken = std::move(pending);
  waiting_.erase(found->second);
  by_socket_.erase(found);
  ::epoll_ctl(poller_.get(), EPOLL_CTL_DEL, taken.socket.get(), nullptr);
  return taken;
}

namespace {

auto is_companion(std::uint64_t number, const Peer& peer) {
  return [number, pid = peer.pid](const Pending& pending) {
    return pending.companion == number && pending.peer.pid == pid;
  };
}

}  // namespace

bool PendingConnectors::has_companion(std::uint64_t number, const Peer& peer) const {
  return std::any_of(waiting_.begin(), waiting_.end(), is_companion(number, peer));
}

UniqueFd PendingConnectors::take_companion(std::uint64_t number, const Peer& peer) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), is_companion(number, peer));
  return found == waiting_.end() ? UniqueFd() : take(*found).socket;
}

std::optional<Pending> PendingConnectors::take_late(Pending::Clock::time_point now, bool companions) {
  for (Pending& pending : waiting_) {
    if (pending.give_up > now) break;
    if (!pending.waits && (companions || pending.companion == 0)) return take(pending);
  }
  return std::nullopt;
}

Pending PendingConnectors::take_least_promising() {
  const auto ended = std::ranges::find_if(waiting_, [](const Pending& pending) { return pending.ended; });
  if (ended != waiting_.end()) return take(*ended);
  if (auto silent = take_silent()) return std::move(*silent);
  return take(waiting_.front());
}

std::optional<Pending> PendingConnectors::take_silent() {
  const auto found =
      std::ranges::find_if(waiting_, [](const Pending& pending) { return pending.companion == 0 && !pending.waits; });
  if (found == waiting_.end()) return std::nullopt;
  return take(*found);
}

}  // namespace wherry::fabric::shm
