// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

namespace wherry {

/// While it exists, pthread_cancel of this thread waits. Around whatever system calls are cancellation points: to
/// unwind the stack there would meet functions that never throw, and end the process.
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
