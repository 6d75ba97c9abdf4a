// SPDX-License-Identifier: Apache-2.0
#include "adapters/scif/endpoint.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "adapters/scif/attempt.hpp"
#include "adapters/scif/ports.hpp"
#include "adapters/scif/socket.hpp"

namespace wherry::scif {

constexpr int kLongestBacklog = 1024;

std::unique_ptr<Endpoint> Endpoint::open() {
  UniqueFd socket = make_socket();
  auto endpoint = std::make_unique<Endpoint>(socket.get());
  static_cast<void>(socket.release());
  return endpoint;
}

Endpoint::Endpoint(int descriptor) : slot_(make_slot(descriptor)), line_(descriptor) { remember_inode(); }
Endpoint::~Endpoint() = default;

void Endpoint::remember_inode() { inode_.store(inode_of(descriptor()), std::memory_order_relaxed); }

bool Endpoint::is_current() const { return inode_of(descriptor()) == inode_.load(std::memory_order_relaxed); }

int Endpoint::bind(std::uint16_t port) {
  if (port != 0 && port < kFirstOpenPort && !is_privileged()) return -EACCES;
  const std::lock_guard lock(mutex_);
  if (state_ == State::bound) return -EINVAL;
  if (state_ != State::unbound) return -EISCONN;
  if (port == 0) {
    port = bind_any_port(descriptor(), own_node());
    if (port == 0) return -ENOSPC;
  } else if (const int error = bind_port(descriptor(), own_node(), port); error != 0) {
    return -error;
  }
  port_ = port;
  state_ = State::bound;
  return port;
}

int Endpoint::listen(int backlog) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::unbound || (state_ == State::connected && line_.ask_for_end())) return -EINVAL;
  if (state_ != State::bound) return -EISCONN;
  if (backlog <= 0) return -EINVAL;
  // The kernel admits one more than it is told.
  if (::listen(descriptor(), std::min(backlog, kLongestBacklog) - 1) != 0) return -errno;
  state_ = State::listening;
  return 0;
}

Link* Endpoint::link_if_answered() {
  if (state_ != State::connecting) return nullptr;
  const std::lock_guard lock(mutex_);
  if (state_ == State::connecting) try_finish();
  return state_ == State::connected ? link_.get() : nullptr;
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
  const bool gone = line_.gone();
  short events = 0;
  constexpr short kIn = POLLIN | POLLRDNORM;
  constexpr short kOut = POLLOUT | POLLWRNORM;
  if ((asked & kIn) != 0 && link_->inlet.stirs() && link_->inlet.report()) events |= kIn;
  if ((asked & kOut) != 0 && link_->outlet.has_space()) events |= kOut;
  if (gone) events |= POLLHUP;
  return static_cast<short>(events & always);
}

}  // namespace wherry::scif
