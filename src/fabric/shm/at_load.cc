// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/at_load.hpp"

#include <sys/epoll.h>
#include <sys/single_threaded.h>

#include <cerrno>

#include "arch/barrier.hpp"
#include "base/move_above_fd_setsize.hpp"
#include "base/unique_fd.hpp"

namespace wherry::fabric::shm {

bool prepare_at_load() noexcept {
  if (__libc_single_threaded == 0) return true;
  const int error = errno;
  (void)arch::takes_part_in_interrupts();
  // The kernel never makes its table of descriptors smaller.
  (void)move_above_fd_setsize(UniqueFd(::epoll_create1(EPOLL_CLOEXEC)));
  errno = error;
  return true;
}

}  // namespace wherry::fabric::shm
