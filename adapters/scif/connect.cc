// SPDX-License-Identifier: Apache-2.0
// The connecting side.
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "adapters/scif/attempt.hpp"
#include "adapters/scif/ports.hpp"
#include "adapters/scif/socket.hpp"
#include "base/config.hpp"
#include "base/fork_generation.hpp"

namespace wherry::scif {
namespace {

constexpr std::chrono::seconds kConnectTimeout{10};

bool send_fat_packet(int socket) {
  static constexpr std::array<std::byte, kFatPacket> kNothing{};
  return ::send(socket, kNothing.data(), kNothing.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/// Returns why no listener answers at a node. ECONNREFUSED: its programs may not have started yet, so a retry may
/// succeed.
int refusal(std::uint16_t node) { return node < config::number(config::Key::nodes) ? ECONNREFUSED : ENODEV; }

}  // namespace

int Endpoint::connect(int fd, const scif_portID& to) {
  std::unique_lock lock(mutex_);
  if (state_ == State::connecting) {
    if (!attempt_->may_wait) return -EISCONN;
    try_finish(fd);
    if (state_ == State::connecting) return -EINPROGRESS;
  }
  if (uncollected_) return collect();
  if (state_ == State::listening) return -EOPNOTSUPP;
  if (state_ == State::connected) return waiter_.ask_for_end(fd) ? -EINVAL : -EISCONN;
  if (to.port == 0) return -EINVAL;
  const bool may_wait = (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
  if (const int error = start(fd, to, may_wait); error != 0) return -error;
  if (may_wait) return -EINPROGRESS;
  return await_answer(fd, lock);
}

int Endpoint::collect() {
  uncollected_ = false;
  return outcome_ == 0 ? port_ : -outcome_;
}

int Endpoint::start(int fd, const scif_portID& to, bool may_wait) {
  take_own_socket(fd);
  if (state_ == State::unbound) {
    port_ = bind_any_port(fd, own_node());
    if (port_ == 0) return ENOSPC;
    state_ = State::bound;
  }
  // First what needs descriptors and may fail: a socket can be connected only once.
  std::unique_ptr<Attempt> attempt(new Attempt{.peer = {},
                                               .own = OwnHalf(offer()),
                                               .give_up = std::chrono::steady_clock::now() + kConnectTimeout,
                                               .may_wait = may_wait});
  if (!connect_to(fd, to)) return refusal(to.node);
  attempt_ = std::move(attempt);
  attempt_->peer = peer_behind(fd, to);
  if (!is_of_own_user(fd) || !attempt_->own.send_hello(fd, port_) || !send_fat_packet(fd)) {
    fail_attempt(fd, ECONNREFUSED);
    uncollected_ = false;
    return ECONNREFUSED;
  }
  state_ = State::connecting;
  return 0;
}

int Endpoint::await_answer(int fd, std::unique_lock<std::mutex>& lock) {
  while (state_ == State::connecting) {
    const fabric::Deadline give_up = attempt_->give_up;
    lock.unlock();
    const int error = waiter_.sleep(fd, POLLIN, give_up);
    lock.lock();
    if (state_ != State::connecting) break;
    if (error == EINTR || error == ECANCELED) {
      fail_attempt(fd, EINTR);
    } else {
      try_finish(fd);
    }
  }
  uncollected_ = false;
  return outcome_ == 0 ? port_ : -outcome_;
}

/// Ends the attempt if it was answered, the peer is gone, or the time is over.
int Endpoint::try_finish(int fd) {
  PeersHello hello;
  const int error = hello.receive(fd);
  if (error == EAGAIN && std::chrono::steady_clock::now() < *attempt_->give_up) return EAGAIN;
  if (error != 0) return fail_attempt(fd, error == EMFILE ? EMFILE : ECONNREFUSED);
  try {
    link_ =
        std::make_unique<Link>(entry_, waiter_, fd, std::move(attempt_->own).join(std::move(hello), attempt_->peer));
  } catch (const Error& failure) {
    return fail_attempt(fd, failure.code().value() == EPROTO ? ECONNREFUSED : failure.code().value());
  }
  attempt_.reset();
  outcome_ = 0;
  uncollected_ = true;
  state_ = State::connected;  // SCIF-STATE release: the link; pairs with Endpoint::link
  return 0;
}

/// Ends the attempt with an error. The endpoint is bound again, and may connect anew.
int Endpoint::fail_attempt(int fd, int error) {
  attempt_.reset();
  outcome_ = error;
  uncollected_ = true;
  state_ = State::bound;
  generation_ = kUsedUp;
  try {
    renew_socket(fd);
  } catch (const Error&) {  // no descriptor is free: the next use of the endpoint needs one
  }
  return error;
}

/// To be called before an endpoint is bound or connected. A forked child replaces an inherited socket, because its
/// operations would change the parent's socket.
void Endpoint::take_own_socket(int fd) {
  if (generation_ != fork_generation()) renew_socket(fd);
}

/// Replaces the socket under all of its descriptors, because a socket can be connected only once. If the port is taken
/// in between, or another process has the old socket open as well, the endpoint shares its port.
void Endpoint::renew_socket(int fd) {
  const UniqueFd fresh = make_socket();
  ::fcntl(fresh.get(), F_SETFL, ::fcntl(fd, F_GETFL));
  for (int each = -1; (each = descriptor_of(waiter_.socket())) >= 0;) {
    const int flags = ::fcntl(each, F_GETFD);
    if (::dup3(fresh.get(), each, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) < 0) break;
  }
  if (port_ != 0) bind_to(fresh.get(), own_node(), port_);
  const std::uint64_t socket = inode_of(fresh.get());
  socket_changed(entry_, waiter_.socket(), socket);
  waiter_.become(socket);
  generation_ = fork_generation();
}

}  // namespace wherry::scif
