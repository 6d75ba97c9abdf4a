// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/endpoint_waiter.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <optional>
#include <thread>

#include "adapters/scif/socket.hpp"
#include "base/fork_generation.hpp"
#include "fabric/event_bell.hpp"

namespace wherry::scif {
namespace {

/// Returns the thread's bell, which is made when it first sleeps: a thread sleeps in one call at a time. A forked child
/// makes another, because the inherited one is its parent's.
fabric::EventBell& own_bell() {
  struct Own {
    Origin origin;
    fabric::EventBell bell;
  };
  thread_local std::optional<Own> own;
  if (!own || own->origin.inherited()) own.emplace();
  return own->bell;
}

/// Returns POLLHUP if the peer has ended. For use if the kernel refuses to poll: an end with no packets before it shows
/// in reading.
short end_by_reading(int fd, int timeout) {
  std::this_thread::sleep_for(std::chrono::milliseconds(timeout));
  std::byte next{};
  const ssize_t bytes = ::recv(fd, &next, 1, MSG_DONTWAIT | MSG_PEEK);
  return bytes == 0 || (bytes < 0 && errno == ECONNRESET) ? POLLHUP : 0;
}

}  // namespace

Sleepers::Here::Here(Sleepers& all) : all_(&all), bell_(own_bell().descriptor()) {
  const std::lock_guard lock(all_->mutex_);
  all_->bells_.push_back(bell_);
}

Sleepers::Here::~Here() {
  if (all_ == nullptr) return;
  const std::lock_guard lock(all_->mutex_);
  all_->bells_.erase(std::find(all_->bells_.begin(), all_->bells_.end(), bell_));
  if (all_->woken()) own_bell().silence();
}

void Sleepers::wake() {
  const std::lock_guard lock(mutex_);
  woken_.store(true, std::memory_order_release);  // SCIF-WOKEN
  for (const int bell : bells_) fabric::EventBell::notify(bell);
}

void Sleepers::forget_parents() { new (this) Sleepers; }

bool EndpointWaiter::is(int fd) const { return inode_of(fd) == socket(); }

int EndpointWaiter::sleep(int fd, short events, fabric::Deadline deadline) {
  const Sleepers::Here here(sleepers_);
  if (sleepers_.woken()) return ECANCELED;
  if (!is(fd)) return EBADF;
  std::array<pollfd, 2> polled{pollfd{fd, events, 0}, pollfd{here.descriptor(), POLLIN, 0}};
  const int ready = fabric::wait_for_events(polled, deadline);
  if (ready < 0) return EINTR;
  if (ready == 0) return ETIMEDOUT;
  if (sleepers_.woken()) return ECANCELED;
  if ((polled[0].revents & POLLNVAL) != 0) return EBADF;
  note_events(fd, polled[0].revents);
  // If the kernel refuses to poll, all requested events are reported, the bell's too, but never a hang-up.
  if (polled[1].revents != 0) ask_for_end(fd);
  return 0;
}

bool EndpointWaiter::look_for_end(int fd) {
  if (gone()) return true;
  return is_due(1) && ask_for_end(fd);
}

bool EndpointWaiter::ends_within(int fd, int timeout) {
  pollfd polled{fd, 0, 0};
  if (::poll(&polled, 1, timeout) < 0 && errno != EINTR) polled.revents = end_by_reading(fd, timeout);
  if (!is(fd)) return true;  // the call fails; the endpoint remains usable by another descriptor of its socket
  note_events(fd, polled.revents);
  return gone();
}

void EndpointWaiter::note_events(int fd, short kernel) {
  // The kernel closes the peer's socket after its last store.
  if ((kernel & (POLLHUP | POLLERR)) != 0 && is(fd)) declare_gone();
  asked_.store(arch::ticks(), std::memory_order_relaxed);
}

}  // namespace wherry::scif
