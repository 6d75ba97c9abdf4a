// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/meeting_socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include <wherry/error.hpp>

namespace wherry::fabric::ofi {
namespace {

void set_option(int socket, int level, int name, int value) noexcept {
  (void)::setsockopt(socket, level, name, &value, sizeof value);
}

}  // namespace

void watch_host(int socket, std::chrono::milliseconds timeout) noexcept {
  constexpr int kSendBuffer = 64 * 1024;  // all messages of a rendezvous together
  const int limit = static_cast<int>(timeout.count());
  set_option(socket, SOL_SOCKET, SO_SNDBUF, kSendBuffer);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, std::max(1, limit / 1000 - 2));
  // Keepalive sends no probes while bytes are unacknowledged; this limit applies then.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, limit);
}

bool send_whole(int socket, std::span<const std::byte> message) noexcept {
  return ::send(socket, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(message.size());
}

void Incoming::expect(std::size_t bytes) {
  buffer_.assign(bytes, std::byte{});
  received_ = 0;
}

Incoming::State Incoming::receive(int socket) {
  while (received_ < buffer_.size()) {
    const auto rest = std::span(buffer_).subspan(received_);
    const ssize_t bytes = ::recv(socket, rest.data(), rest.size(), MSG_DONTWAIT);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return State::partial;
    if (bytes <= 0) {
      error_ = bytes < 0 ? errno : 0;
      return State::ended;
    }
    received_ += static_cast<std::size_t>(bytes);
  }
  return State::complete;
}

Timer::Timer() : fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!fd_.valid()) throw Error(errno, "make timer", "", "raise the limit of open files: ulimit -n");
}

void Timer::set(Clock::time_point when) noexcept {
  using namespace std::chrono;
  itimerspec spec{};
  if (when != Clock::time_point::max()) {
    // 0 would disarm it.
    const auto ns = std::max<std::int64_t>(1, duration_cast<nanoseconds>(when.time_since_epoch()).count());
    spec.it_value = {.tv_sec = ns / std::nano::den, .tv_nsec = ns % std::nano::den};
  }
  (void)::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

UniqueFd make_poller() {
  UniqueFd poller(::epoll_create1(EPOLL_CLOEXEC));
  if (!poller.valid()) throw Error(errno, "make epoll descriptor", "", "raise the limit of open files: ulimit -n");
  return poller;
}

bool poll_for(int poller, int socket, std::uint32_t events, std::uint64_t id) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) == 0 ||
         (errno == EEXIST && ::epoll_ctl(poller, EPOLL_CTL_MOD, socket, &event) == 0);
}

}  // namespace wherry::fabric::ofi
