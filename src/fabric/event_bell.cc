// SPDX-License-Identifier: Apache-2.0
#include "fabric/event_bell.hpp"

#include <sys/eventfd.h>

#include <cerrno>

#include <wherry/error.hpp>

#include "base/not_cancelled.hpp"
#include "base/refused_call.hpp"

namespace wherry::fabric {

EventBell::EventBell() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) {
    throw Error(errno, "make a bell", "", advice_on(errno, "eventfd"));
  }
}

void EventBell::notify(int bell) noexcept {
  const NotCancelled here;
  ::eventfd_write(bell, 1);
}

bool EventBell::silence() const noexcept {
  const NotCancelled here;
  eventfd_t rung = 0;
  return ::eventfd_read(event_.get(), &rung) == 0;
}

}  // namespace wherry::fabric
