// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/line.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "fabric/event_bell.hpp"

namespace wherry::scif {
namespace {

/// Made when the thread first sleeps; a thread sleeps in one call at a time.
fabric::EventBell& own_bell() {
  thread_local fabric::EventBell bell;
  return bell;
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
  for (const int bell : bells_) fabric::EventBell::ring(bell);
}

int Line::sleep(short events, fabric::Deadline deadline) {
  const Sleepers::Here here(sleepers_);
  if (sleepers_.woken()) return ECANCELED;
  std::array<pollfd, 2> polled{pollfd{fd_, events, 0}, pollfd{here.descriptor(), POLLIN, 0}};
  timespec storage{};
  const int ready = ::ppoll(polled.data(), polled.size(), fabric::time_left(deadline, storage), nullptr);
  if (ready < 0) return errno;
  if (ready == 0) return ETIMEDOUT;
  if (polled[1].revents != 0) return ECANCELED;
  if ((polled[0].revents & POLLNVAL) != 0) return EBADF;
  if ((polled[0].revents & (POLLHUP | POLLERR)) != 0) declare_gone();
  return 0;
}

bool Line::look_for_end() {
  if (gone()) return true;
  return is_due(1) && ask_for_end();
}

bool Line::ends_within(int patience) {
  pollfd polled{fd_, 0, 0};
  ::poll(&polled, 1, patience);
  told(polled.revents);
  return gone();
}

void Line::told(short kernel) {
  // The kernel closes the peer's socket after its last store.
  if ((kernel & (POLLHUP | POLLERR | POLLNVAL)) != 0) declare_gone();
  asked_.store(arch::ticks(), std::memory_order_relaxed);
}

}  // namespace wherry::scif
