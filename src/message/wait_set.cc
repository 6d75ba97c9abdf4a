// SPDX-License-Identifier: Apache-2.0
#include "message/wait_set.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include <wherry/error.hpp>

#include "base/refused_call.hpp"

namespace wherry::message {

void WaitSet::join(fabric::Connection& member) {
  if (epoll_.valid()) {
    add(epoll_, member.descriptor(bell_));
  } else if (!members_.empty()) {
    make_epoll();
    add(epoll_, member.descriptor(bell_));
  }
  const std::lock_guard lock(mutex_);
  members_.push_back(&member);
}

void WaitSet::leave(fabric::Connection& member) noexcept {
  if (epoll_.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, member.descriptor(bell_), nullptr);
  const std::lock_guard lock(mutex_);
  std::erase(members_, &member);
}

void WaitSet::watch(int descriptor) {
  watched_.reserve(watched_.size() + 1);
  if (!epoll_.valid()) make_epoll();
  add(epoll_, descriptor);
  watched_.push_back(descriptor);
}

void WaitSet::unwatch(int descriptor) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  std::erase(watched_, descriptor);
}

int WaitSet::descriptor() {
  if (!epoll_.valid()) make_epoll();
  return epoll_.get();
}

void WaitSet::make_epoll() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) throw Error(errno, "make a descriptor", "", advice_on(errno, "epoll_create1"));
  // Complete before it becomes the set's: a set that lacks a member would miss its bell.
  std::optional<fabric::EventBell> own(std::in_place);
  add(epoll, own->descriptor());
  for (fabric::Connection* member : members_) add(epoll, member->descriptor(bell_));
  for (const int descriptor : watched_) add(epoll, descriptor);
  const std::lock_guard lock(mutex_);
  own_.swap(own);
  epoll_ = std::move(epoll);
}

void WaitSet::add(const UniqueFd& epoll, int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    throw Error(errno, "wait for several peers", "", advice_on(errno, "epoll_ctl"));
  }
}

void WaitSet::arm() {
  for (fabric::Connection* member : members_) member->arm(bell_);
}

void WaitSet::silence_self() noexcept {
  if (own_) own_->silence();
}

void WaitSet::sleep(fabric::Deadline deadline) noexcept {
  if (!epoll_.valid()) {
    if (!members_.empty()) members_.front()->wait(bell_, deadline);
    return;
  }
  (void)fabric::wait_until_readable(epoll_.get(), deadline);
}

std::optional<fabric::Connection::Notification> WaitSet::last_notification() const {
  std::optional<fabric::Connection::Notification> last;
  for (const fabric::Connection* member : members_) {
    const auto one = member->last_notification(bell_);
    if (one && (!last || one->ns > last->ns)) last = one;
  }
  return last;
}

void WaitSet::notify() noexcept {
  const std::lock_guard lock(mutex_);
  if (own_) own_->notify();
  if (!epoll_.valid() && !members_.empty()) members_.front()->notify_self(bell_);
}

}  // namespace wherry::message
