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

fi_ops object_calls = closable(close);
fi_ops_cntr own_calls{sizeof(fi_ops_cntr), read, readerr, add, set, wait, adderr, seterr};

}  // namespace

Counter::Counter(Domain& domain, void* context)
    : fid_cntr{{FI_CLASS_CNTR, context, &object_calls}, &own_calls}, domain_(domain), waiting_(domain.lock()) {
  ++domain_.users;
}

Counter::~Counter() { --domain_.users; }

Counter& Counter::of(fid_t handle) { return object_of<Counter, fid_cntr>(handle); }

int Counter::open(Domain& domain, const fi_cntr_attr* attributes, void* context, fid_cntr** counter) {
  if (attributes != nullptr) {
    const fi_wait_obj object = attributes->wait_obj;
    if (object != FI_WAIT_NONE && object != FI_WAIT_UNSPEC && object != FI_WAIT_YIELD) return -FI_ENOSYS;
    if (attributes->events != FI_CNTR_EVENTS_COMP || attributes->flags != 0) return -FI_ENOSYS;
  }
  return guarded([&] {
    *counter = new Counter(domain, context);
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
  return errors ? errors_ : value_;
}

int Counter::change(std::uint64_t value, bool errors, bool adds) {
  const std::lock_guard guard(domain_.lock());
  std::uint64_t& word = errors ? errors_ : value_;
  word = adds ? word + value : value;
  waiting_.interrupt();
  return 0;
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
