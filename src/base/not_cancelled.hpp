// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

namespace wherry {

/// Defers pthread_cancel of this thread while it exists. Used around system calls that are cancellation points:
/// unwinding from there would meet noexcept functions and end the process.
class NotCancelled {
 public:
  NotCancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;
  ~NotCancelled() { ::pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace wherry
