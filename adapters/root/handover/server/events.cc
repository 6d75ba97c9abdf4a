// SPDX-License-Identifier: Apache-2.0
#include "events.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include <wherry/error.hpp>

namespace wherry::root {

Events::Events() : readable_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!readable_.valid()) {
    throw Error(errno, "make a descriptor for events", "", "raise the limit of open files (ulimit -n)");
  }
}

void Events::push(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  show();
  some_.notify_one();
}

std::optional<Event> Events::next(Timeout timeout) {
  std::unique_lock lock(mutex_);
  const auto something = [this] { return interrupted_ || !events_.empty(); };
  if (!timeout) {
    some_.wait(lock, something);
  } else {
    some_.wait_until(lock, std::chrono::steady_clock::now() + *timeout, something);
  }
  std::optional<Event> event;
  if (!events_.empty()) {
    event = std::move(events_.front());
    events_.pop_front();
  } else {
    interrupted_ = false;
  }
  if (events_.empty() && !interrupted_) hide();
  return event;
}

std::size_t Events::size() {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

void Events::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  show();
  some_.notify_one();
}

int Events::descriptor() {
  const std::lock_guard lock(mutex_);
  watched_ = true;
  if (interrupted_ || !events_.empty()) show();
  return readable_.get();
}

void Events::show() {
  if (watched_ && !std::exchange(shown_, true)) (void)::eventfd_write(readable_.get(), 1);
}

void Events::hide() {
  eventfd_t count = 0;
  if (std::exchange(shown_, false)) (void)::eventfd_read(readable_.get(), &count);
}

}  // namespace wherry::root
