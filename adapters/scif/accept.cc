// SPDX-License-Identifier: Apache-2.0
// The accepting side.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>

#include "adapters/scif/attempt.hpp"
#include "adapters/scif/socket.hpp"
#include "fabric/wait_for_events.hpp"

namespace wherry::scif {
namespace {

/// Time that one call of accept waits for packets in all. A connector sends its two packets right after it connects,
/// unless it is stopped or killed in between.
constexpr std::chrono::seconds kHelloTimeout{1};

/// Interval between checks whether another thread closes the listener.
constexpr std::chrono::milliseconds kStep{100};

/// Connections that one look takes from the kernel's queue. Most of them may be strangers'.
constexpr int kMostAtOnce = 64;

/// Waits for the next packet. Returns 0; EPROTO if the connector is gone; ETIMEDOUT; EINTR after a signal, or if the
/// listener is being closed.
int await_packet(const Sleepers& listener, int socket, std::chrono::steady_clock::time_point deadline) {
  while (true) {
    std::byte next{};
    const ssize_t bytes = ::recv(socket, &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (bytes > 0) return 0;
    if (bytes == 0 || errno != EAGAIN) return EPROTO;
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return ETIMEDOUT;
    pollfd polled{socket, POLLIN, 0};
    if (fabric::wait_for_events(std::span(&polled, 1), std::min(deadline, now + kStep)) < 0 || listener.woken()) {
      return EINTR;
    }
  }
}

int receive_hello(const Sleepers& listener, int socket, PeersHello& hello,
                  std::chrono::steady_clock::time_point deadline) {
  if (const int error = await_packet(listener, socket, deadline); error != 0) return error;
  // EPROTO: a stranger's packet, which no second one follows.
  if (const int error = hello.receive(socket); error != 0) return error;
  return await_packet(listener, socket, deadline);
}

}  // namespace

int Endpoint::accept(int fd, scif_portID& peer, bool wait, Opened& accepted) {
  while (true) {
    if (state_ != State::listening) return -EINVAL;
    const int error = take_request(fd, peer, accepted);
    if (error != EAGAIN) return -error;
    if (!wait) return -EAGAIN;
    if (const int woken = waiter_.sleep(fd, POLLIN, {}); woken != 0) return -(woken == ECANCELED ? EINTR : woken);
  }
}

int Endpoint::take_request(int fd, scif_portID& peer, Opened& accepted) {
  const auto deadline = std::chrono::steady_clock::now() + kHelloTimeout;
  for (int taken = 0; taken < kMostAtOnce; ++taken) {
    pollfd polled{fd, POLLIN, 0};
    if (::poll(&polled, 1, 0) == 0) return EAGAIN;  // accept4 would report it a tick of the kernel's clock later
    Opened made{.endpoint = nullptr, .socket = UniqueFd(::accept4(fd, nullptr, nullptr, 0))};
    if (!made.socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return errno;
    }
    if (!is_of_own_user(made.socket.get())) continue;
    tune_socket(made.socket.get());
    made.endpoint = std::make_unique<Endpoint>(made.socket.get());
    const int error = answer(made, peer, deadline);
    // The peer's descriptors had no place in this process and are lost, or the wait was interrupted: refuse the
    // connector.
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR) return error;
    if (error != 0) continue;  // the connector is gone, or is no endpoint: take the next
    accepted = std::move(made);
    return 0;
  }
  return EAGAIN;
}

/// Makes the endpoint of an accepted socket connected.
int Endpoint::answer(Opened& made, scif_portID& peer, std::chrono::steady_clock::time_point deadline) {
  const int socket = made.socket.get();
  Endpoint& endpoint = *made.endpoint;
  PeersHello hello;
  if (const int error = receive_hello(waiter_.sleepers(), socket, hello, deadline); error != 0) return error;
  peer = hello.port();
  try {
    auto connection = OwnHalf(offer()).answer(std::move(hello), peer_behind(socket, peer), socket, port_);
    if (connection == nullptr) return ECONNRESET;
    endpoint.link_ = std::make_unique<Link>(endpoint.entry_, endpoint.waiter_, socket, std::move(connection));
  } catch (const Error& failure) {
    return failure.code().value();
  }
  std::byte nothing{};
  [[maybe_unused]] const auto taken = ::recv(socket, &nothing, 1, MSG_DONTWAIT);
  endpoint.port_ = port_;
  endpoint.state_ = State::connected;  // SCIF-STATE release: the link; pairs with Endpoint::link
  return 0;
}

}  // namespace wherry::scif
