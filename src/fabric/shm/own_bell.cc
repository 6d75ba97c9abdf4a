// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/own_bell.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include <wherry/error.hpp>

#include "base/move_above_fd_setsize.hpp"
#include "base/not_cancelled.hpp"
#include "base/refused_call.hpp"
#include "fabric/wait_for_events.hpp"

namespace wherry::fabric::shm {
namespace {

/// Attempts to ring while the kernel has no memory.
constexpr int kTries = 100;

/// Bytes of kernel memory of rings that the peer has not taken; a ring takes 0.8 KiB. An honest peer leaves at most
/// three rings untaken, and its edge-triggered set may then need the next one.
constexpr int kMostUntaken = 4096;

}  // namespace

OwnBell::OwnBell() : set_(move_above_fd_setsize(UniqueFd(::epoll_create1(EPOLL_CLOEXEC)))) {
  if (!set_.valid()) throw Error(errno, "make a bell", "", advice_on(errno, "epoll_create1"));
}

void OwnBell::listen_to(int socket, bool rings) {
  heard_events_ = EPOLLRDHUP | (rings ? static_cast<std::uint32_t>(EPOLLIN) : 0);
  rings_ = rings;
  socket_ = socket;
  epoll_event event{.events = heard_events_, .data = {.fd = socket_}};
  if (::epoll_ctl(set_.get(), EPOLL_CTL_ADD, socket_, &event) == 0) return;
  throw Error(errno, "make a bell", "", advice_on(errno, "epoll_ctl"));
}

/// Makes the set readable by watching for writability. The socket is always writable, because PeerBell limits the
/// packets that the peer has not taken to a few. This needs no memory and cannot fail.
void OwnBell::show_own_ring(bool rung) noexcept {
  const std::uint32_t shown = rung ? heard_events_ | EPOLLOUT : heard_events_;
  epoll_event event{.events = shown, .data = {.fd = socket_}};
  ::epoll_ctl(set_.get(), EPOLL_CTL_MOD, socket_, &event);
  rung_ = rung;
}

void OwnBell::notify() noexcept {
  const std::lock_guard lock(mutex_);
  // Polls the set first. A packet that was taken stays on the set's ready list until the set is polled. An entry that
  // is already on the list gives no edge to a set that contains this one.
  pollfd looked{.fd = set_.get(), .events = POLLIN, .revents = 0};
  ::poll(&looked, 1, 0);
  show_own_ring(true);
}

void OwnBell::hide_own_ring() noexcept {
  const std::lock_guard lock(mutex_);
  if (!rung_) show_own_ring(false);
}

OwnBell::Heard OwnBell::silence() noexcept {
  const NotCancelled here;
  Heard heard = Heard::nothing;
  {
    const std::lock_guard lock(mutex_);
    if (rung_) {
      show_own_ring(false);
      heard = Heard::notification;
    }
  }
  if (!rings_) return heard;
  // The peer rings at most once per arm, and the next arm takes one packet if the peer may have rung. A late ring is
  // left over, and costs one spurious wake-up.
  std::byte anything{};
  const ssize_t n = ::recv(socket_, &anything, sizeof anything, MSG_DONTWAIT);
  if (n > 0) return Heard::notification;
  const bool end = n == 0 || (errno != EAGAIN && errno != EINTR);
  return end && heard == Heard::nothing ? Heard::end : heard;
}

bool OwnBell::await(const Deadline& deadline) const noexcept {
  if (!socket_alone_) return wait_until_readable(set_.get(), deadline);
  std::array polled{pollfd{.fd = set_.get(), .events = POLLIN, .revents = 0},
                    pollfd{.fd = socket_, .events = POLLIN, .revents = 0}};
  return wait_for_events(polled, deadline) != 0;
}

int OwnBell::event_descriptor() noexcept {
  if (!rings_) return descriptor();
  const std::lock_guard lock(mutex_);
  socket_alone_ = true;
  heard_events_ &= ~static_cast<std::uint32_t>(EPOLLIN);
  show_own_ring(rung_);
  return socket_;
}

int OwnBell::descriptor() noexcept {
  const std::lock_guard lock(mutex_);
  if (!shown_) {
    shown_ = true;
    if (UniqueFd near(::fcntl(set_.get(), F_DUPFD_CLOEXEC, 0)); near.valid() && near.get() < set_.get()) {
      set_ = std::move(near);
    }
  }
  return set_.get();
}

bool PeerBell::notify(int socket) noexcept {
  const NotCancelled here;
  int untaken = 0;
  if (unchecked_ == kMostUnchecked && ::ioctl(socket, SIOCOUTQ, &untaken) == 0) {
    if (untaken > kMostUntaken) return true;  // the peer's bell still rings, by the untaken packets
    unchecked_ = 0;
  }
  const std::byte anything{1};
  for (int tries = 0; tries < kTries; ++tries) {
    if (::send(socket, &anything, sizeof anything, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
      unchecked_ = std::min(unchecked_ + 1, kMostUnchecked);
      return true;
    }
    // A peer that is gone, or whose socket is full, need not be rung.
    if (errno != EINTR && errno != ENOBUFS && errno != ENOMEM) return true;
    if (errno != EINTR) std::this_thread::yield();
  }
  return false;
}

}  // namespace wherry::fabric::shm
