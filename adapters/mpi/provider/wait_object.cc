// SPDX-License-Identifier: Apache-2.0
#include "wait_object.hpp"

#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include <wherry/error.hpp>

namespace wherry::mpi {
namespace {

int opened(int descriptor, const char* what) {
  if (descriptor < 0) throw Error(errno, what, "", "");
  return descriptor;
}

}  // namespace

bool WaitObject::serves(fi_wait_obj kind) {
  return kind == FI_WAIT_NONE || kind == FI_WAIT_UNSPEC || kind == FI_WAIT_YIELD || kind == FI_WAIT_FD;
}

std::unique_ptr<WaitObject> WaitObject::of(fi_wait_obj kind) {
  return kind == FI_WAIT_FD ? std::make_unique<WaitObject>() : nullptr;
}

WaitObject::WaitObject() : set_(opened(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ >= 0) {
    add(event_);
    return;
  }
  const int error = errno;
  ::close(set_);
  throw Error(error, "eventfd", "", "");
}

WaitObject::~WaitObject() {
  ::close(event_);
  ::close(set_);
}

void WaitObject::add(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(set_, EPOLL_CTL_ADD, descriptor, &event) != 0 && errno != EEXIST)
    throw Error(errno, "epoll_ctl", "", "");
}

void WaitObject::remove(int descriptor) noexcept { (void)epoll_ctl(set_, EPOLL_CTL_DEL, descriptor, nullptr); }

void WaitObject::raise() noexcept {
  if (raised_) return;
  constexpr std::uint64_t kOne = 1;
  raised_ = write(event_, &kOne, sizeof(kOne)) == sizeof(kOne);
}

void WaitObject::lower() noexcept {
  if (!raised_) return;
  std::uint64_t count = 0;
  raised_ = read(event_, &count, sizeof(count)) != sizeof(count);
}

int WaitObject::control(const WaitObject* object, int command, void* argument) {
  switch (command) {
    case FI_GETWAIT:
      if (object == nullptr) return -FI_ENOSYS;
      *static_cast<int*>(argument) = object->descriptor();
      return 0;
    case FI_GETWAITOBJ:
      *static_cast<fi_wait_obj*>(argument) = object == nullptr ? FI_WAIT_NONE : FI_WAIT_FD;
      return 0;
    default:
      return -FI_ENOSYS;
  }
}

}  // namespace wherry::mpi
