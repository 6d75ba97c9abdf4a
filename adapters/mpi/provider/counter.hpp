// SPDX-License-Identifier: Apache-2.0
// fi_cntr(3).
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>
#include <memory>

#include "adapters/mpi/messenger/completion.hpp"
#include "domain.hpp"
#include "wait_object.hpp"
#include "waiting.hpp"

namespace wherry::mpi {

class Counter : public fid_cntr {
 public:
  Counter(Domain& domain, fi_wait_obj wait, void* context);
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter();

  static Counter& of(fid_t handle);
  static int open(Domain& domain, const fi_cntr_attr* attributes, void* context, fid_cntr** counter);

  /// The caller holds the domain's lock.
  void count(const Completion& completion) {
    ++(completion.error == 0 ? value_ : errors_);
    if (wait_object_ != nullptr) wait_object_->raise();
  }
  Waiting& waiting() { return waiting_; }
  WaitObject* wait_object() { return wait_object_.get(); }
  int users = 0;  ///< endpoints that it is bound to

  std::uint64_t read(bool errors);
  int change(std::uint64_t value, bool errors, bool adds);
  int wait(std::uint64_t threshold, int timeout);
  /// fi_trywait. Returns 0 if the caller may sleep, or -FI_EAGAIN if the counter has changed since its last read or has
  /// work to do.
  int try_wait() noexcept;

 private:
  Domain& domain_;
  std::uint64_t value_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t seen_ = 0;  ///< value_ + errors_ at the last read
  std::unique_ptr<WaitObject> wait_object_;
  Waiting waiting_;
};

}  // namespace wherry::mpi
