// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/own_bell.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/beyond_select.hpp"
#include "base/not_cancelled.hpp"
#include "base/refused_call.hpp"
#include "fabric/wait_for_events.hpp"

namespace wherry::fabric::shm {
namespace {

/// A peer rings once per sleep. One that rings without a pause is not listened to for ever.
constexpr int kMostPackets = 16;

/// A descriptor that is always readable, one for all bells of this process, as long as there is one.
std::shared_ptr<const UniqueFd> always_readable() {
  // Never destroyed: connections in static objects outlive main().
  static auto& mutex = *new std::mutex;
  static auto& shared = *new std::weak_ptr<const UniqueFd>;
  const std::lock_guard lock(mutex);
  if (auto there = shared.lock()) return there;
  const auto made = std::make_shared<const UniqueFd>(beyond_select(UniqueFd(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK))));
  if (!made->valid()) throw Error(errno, "make a bell", "", advice_on(errno, "eventfd"));
  shared = made;
  return made;
}

void control(int set, int operation, int descriptor, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = descriptor}};
  if (::epoll_ctl(set, operation, descriptor, &event) == 0) return;
  throw Error(errno, "make a bell", "", advice_on(errno, "epoll_ctl"));
}

}  // namespace

/// The place of this side's own ring in the set is taken now: to ring needs no memory then, and cannot fail.
OwnBell::OwnBell() : readable_(always_readable()), set_(beyond_select(UniqueFd(::epoll_create1(EPOLL_CLOEXEC)))) {
  if (!set_.valid()) throw Error(errno, "make a bell", "", advice_on(errno, "epoll_create1"));
  control(set_.get(), EPOLL_CTL_ADD, readable_->get(), 0);
}

void OwnBell::listen_to(int socket) {
  control(set_.get(), EPOLL_CTL_ADD, socket, EPOLLIN | EPOLLRDHUP);
  socket_ = socket;
}

void OwnBell::show_own_ring(bool rung) noexcept {
  epoll_event event{.events = rung ? static_cast<std::uint32_t>(EPOLLIN) : 0, .data = {.fd = -1}};
  ::epoll_ctl(set_.get(), EPOLL_CTL_MOD, readable_->get(), &event);
  rung_ = rung;
}

void OwnBell::ring() noexcept {
  const std::lock_guard lock(mutex_);
  if (!rung_) show_own_ring(true);
}

OwnBell::Heard OwnBell::silence() noexcept {
  const NotCancelled here;
  Heard heard = Heard::nothing;
  {
    const std::lock_guard lock(mutex_);
    if (rung_) {
      show_own_ring(false);
      heard = Heard::ring;
    }
  }
  for (int packets = 0; packets < kMostPackets; ++packets) {
    std::byte anything{};
    const ssize_t n = ::recv(socket_, &anything, sizeof anything, MSG_DONTWAIT);
    if (n > 0) {
      heard = Heard::ring;
      continue;
    }
    const bool end = n == 0 || (errno != EAGAIN && errno != EINTR);
    // Rings before the end are heard first, as what the peer published before it left.
    return end && heard == Heard::nothing && socket_ >= 0 ? Heard::end : heard;
  }
  return heard;
}

bool OwnBell::await(const Deadline& deadline) const noexcept { return wait_until_readable(set_.get(), deadline); }

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

void ring_peer(int socket) noexcept {
  const NotCancelled here;
  const std::byte anything{1};
  // Where there is no room for it, packets lie there already, and the peer is ringing.
  while (::send(socket, &anything, sizeof anything, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) continue;
}

}  // namespace wherry::fabric::shm
