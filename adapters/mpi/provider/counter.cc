// SPDX-License-Identifier: Apache-2.0
#include "counter.hpp"

#include <chrono>
#include <mutex>

#include "objects.hpp"

namespace wherry::mpi {
namespace {

Counter& counter_of(fid_cntr* counter) { return *static_cast<Counter*>(counter); }

int close(fid_t handle) {
  Counter& counter = Counter::of(handle);
  if (counter.users > 0) return -FI_EBUSY;
  delete &counter;
  return 0;
}

std::uint64_t read(fid_cntr* counter) { return counter_of(counter).read(false); }
std::uint64_t readerr(fid_cntr* counter) { return counter_of(counter).read(true); }
int add(fid_cntr* counter, std::uint64_t value) { return counter_of(counter).change(value, false, true); }
int set(fid_cntr* counter, std::uint64_t value) { return counter_of(counter).change(value, false, false); }
int adderr(fid_cntr* counter, std::uint64_t value) { return counter_of(counter).change(value, true, true); }
int seterr(fid_cntr* counter, std::uint64_t value) { return counter_of(counter).change(value, true, false); }
int wait(fid_cntr* counter, std::uint64_t threshold, int timeout) {
  return counter_of(counter).wait(threshold, timeout);
}

int control(fid_t handle, int command, void* argument) {
  return WaitObject::control(Counter::of(handle).wait_object(), command, argument);
}

fi_ops object_operations() {
  fi_ops result = closable(close);
  result.control = control;
  return result;
}
fi_ops object_calls = object_operations();
fi_ops_cntr own_calls{sizeof(fi_ops_cntr), read, readerr, add, set, wait, adderr, seterr};

}  // namespace

Counter::Counter(Domain& domain, fi_wait_obj wait, void* context)
    : fid_cntr{{FI_CLASS_CNTR, context, &object_calls}, &own_calls},
      domain_(domain),
      wait_object_(WaitObject::of(wait)),
      waiting_(domain.lock()) {
  ++domain_.users;
}

Counter::~Counter() { --domain_.users; }

Counter& Counter::of(fid_t handle) { return object_of<Counter, fid_cntr>(handle); }

int Counter::open(Domain& domain, const fi_cntr_attr* attributes, void* context, fid_cntr** counter) {
  const fi_wait_obj object = attributes == nullptr ? FI_WAIT_NONE : attributes->wait_obj;
  if (attributes != nullptr) {
    if (!WaitObject::serves(object)) return -FI_ENOSYS;
    if (attributes->events != FI_CNTR_EVENTS_COMP || attributes->flags != 0) return -FI_ENOSYS;
  }
  return guarded([&] {
    *counter = new Counter(domain, object, context);
    return 0;
  });
}

std::uint64_t Counter::read(bool errors) {
  const std::lock_guard guard(domain_.lock());
  const std::uint64_t before = value_ + errors_;
  waiting_.progress();
  if (before == value_ + errors_) {
    waiting_.rest();
  } else {
    waiting_.moved();
  }
  seen_ = value_ + errors_;
  return errors ? errors_ : value_;
}

int Counter::change(std::uint64_t value, bool errors, bool adds) {
  const std::lock_guard guard(domain_.lock());
  std::uint64_t& word = errors ? errors_ : value_;
  word = adds ? word + value : value;
  if (wait_object_ != nullptr) wait_object_->raise();
  waiting_.interrupt();
  return 0;
}

int Counter::try_wait() noexcept {
  const std::lock_guard guard(domain_.lock());
  if (seen_ != value_ + errors_) return -FI_EAGAIN;
  if (wait_object_ != nullptr) wait_object_->lower();
  return waiting_.may_sleep() && seen_ == value_ + errors_ ? 0 : -FI_EAGAIN;
}

int Counter::wait(std::uint64_t threshold, int timeout) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> deadline;
  if (timeout >= 0) deadline = Clock::now() + std::chrono::milliseconds(timeout);
  const std::lock_guard guard(domain_.lock());
  const std::uint64_t errors = errors_;
  while (true) {
    const bool moved = waiting_.progress();
    if (value_ >= threshold) return 0;
    if (errors_ != errors) return -FI_EAVAIL;
    if (deadline && Clock::now() >= *deadline) return -FI_ETIMEDOUT;
    if (!moved) waiting_.sleep_until(deadline);
  }
}

}  // namespace wherry::mpi
