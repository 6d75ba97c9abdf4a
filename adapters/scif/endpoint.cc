// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/endpoint.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "adapters/scif/attempt.hpp"
#include "adapters/scif/ports.hpp"
#include "adapters/scif/socket.hpp"
#include "base/fork_generation.hpp"

namespace wherry::scif {

constexpr int kLongestBacklog = 1024;

Opened Endpoint::open() {
  UniqueFd socket = make_socket();
  auto endpoint = std::make_unique<Endpoint>(socket.get());
  return {.endpoint = std::move(endpoint), .socket = std::move(socket)};
}

Endpoint::Endpoint(int fd) : entry_(take_entry()), waiter_(inode_of(fd)), generation_(fork_generation()) {}
Endpoint::~Endpoint() { give_back(entry_); }

int Endpoint::bind(int fd, std::uint16_t port) {
  if (port != 0 && port < kFirstOpenPort && !is_privileged()) return -EACCES;
  const std::lock_guard lock(mutex_);
  if (state_ == State::bound) return -EINVAL;
  if (state_ != State::unbound) return -EISCONN;
  take_own_socket(fd);
  if (port == 0) {
    port = bind_any_port(fd, own_node());
    if (port == 0) return -ENOSPC;
  } else if (const int error = bind_port(fd, own_node(), port); error != 0) {
    return -error;
  }
  port_ = port;
  state_ = State::bound;
  return port;
}

int Endpoint::listen(int fd, int backlog) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::unbound || (state_ == State::connected && waiter_.ask_for_end(fd))) return -EINVAL;
  if (state_ != State::bound) return -EISCONN;
  if (backlog <= 0) return -EINVAL;
  if (generation_ == kUsedUp) renew_socket(fd);
  // The kernel admits one more than its argument.
  if (::listen(fd, std::min(backlog, kLongestBacklog) - 1) != 0) return -errno;
  state_ = State::listening;
  return 0;
}

Link* Endpoint::link_if_answered(int fd) {
  if (state_ != State::connecting || !waiter_.is(fd)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (state_ == State::connecting) try_finish(fd);
  return state_ == State::connected ? link_.get() : nullptr;
}

void Endpoint::forget_parents() {
  users = 0;
  new (&mutex_) std::mutex;
  waiter_.sleepers().forget_parents();
  if (Link* link = known_link(); link != nullptr) {
    link->receive_queue.forget_parents();
    link->send_queue.forget_parents();
  }
}

short Endpoint::kernel_events(short asked) {
  switch (state_.load()) {
    case State::unbound:
    case State::bound:
      return 0;
    case State::connecting:
      return POLLIN | POLLOUT;
    default:
      return asked;
  }
}

short Endpoint::events(short asked, short kernel) {
  const auto always = static_cast<short>(asked | POLLERR | POLLHUP);
  switch (state_.load()) {
    case State::unbound:
    case State::bound:
      return POLLERR;
    case State::listening:
      return static_cast<short>(kernel & asked & (POLLIN | POLLRDNORM));
    case State::connecting:
      if ((kernel & (POLLIN | POLLHUP)) == 0) return 0;
      return static_cast<short>(POLLOUT & asked);
    case State::connected:
      break;
  }
  const bool gone = waiter_.gone();
  short events = 0;
  constexpr short kIn = POLLIN | POLLRDNORM;
  constexpr short kOut = POLLOUT | POLLWRNORM;
  if ((asked & kIn) != 0 && link_->receive_queue.may_have_data() && link_->receive_queue.report()) events |= kIn;
  if ((asked & kOut) != 0 && link_->send_queue.has_space()) events |= kOut;
  if (gone) events |= POLLHUP;
  return static_cast<short>(events & always);
}

}  // namespace wherry::scif
