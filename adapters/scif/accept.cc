// SPDX-License-Identifier: Apache-2.0
// The accepting side.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "adapters/scif/attempt.hpp"
#include "adapters/scif/socket.hpp"
#include "fabric/shm/rendezvous.hpp"

namespace wherry::scif {
namespace {

/// A connector sends its two packets right behind the connection, or was stopped or killed in between.
constexpr std::chrono::seconds kHelloPatience{1};

/// Connectors, most of them strangers perhaps, that one look takes from the kernel's queue.
constexpr int kMostAtOnce = 64;

/// Waits for the next packet. False: none comes.
bool await_packet(int socket, const fabric::Deadline& deadline) {
  while (std::chrono::steady_clock::now() < *deadline) {
    pollfd polled{socket, POLLIN, 0};
    const int ready = ::poll(&polled, 1, 100);
    if (ready > 0) return (polled.revents & POLLIN) != 0;
  }
  return false;
}

int receive_hello(int socket, fabric::shm::Packet& packet, const fabric::Deadline& deadline) {
  if (!await_packet(socket, deadline)) return ETIMEDOUT;
  if (const int error = fabric::shm::receive_packet(socket, packet); error != 0) return error;
  fabric::Greeting greeting;
  std::memcpy(greeting.data(), packet.hello.greeting, greeting.size());
  if (!fits(greeting, packet.hello.segment_bytes)) return EPROTO;  // somebody's who has no second packet
  std::byte nothing{};
  return await_packet(socket, deadline) && ::recv(socket, &nothing, 1, MSG_PEEK | MSG_DONTWAIT) == 1 ? 0 : EPROTO;
}

}  // namespace

int Endpoint::accept(int fd, scif_portID& peer, bool wait, Opened& accepted) {
  while (true) {
    if (state_ != State::listening) return -EINVAL;
    const int error = take_request(fd, peer, accepted);
    if (error != EAGAIN) return -error;
    if (!wait) return -EAGAIN;
    if (const int woken = line_.sleep(fd, POLLIN, {}); woken != 0) return -(woken == ECANCELED ? EINTR : woken);
  }
}

int Endpoint::take_request(int fd, scif_portID& peer, Opened& accepted) {
  for (int taken = 0; taken < kMostAtOnce; ++taken) {
    pollfd polled{fd, POLLIN, 0};
    if (::poll(&polled, 1, 0) <= 0) return EAGAIN;
    Opened made{.endpoint = nullptr, .socket = UniqueFd(::accept4(fd, nullptr, nullptr, 0))};
    if (!made.socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return errno;
    }
    if (!fabric::shm::same_user(fabric::shm::credentials(made.socket.get()))) continue;
    tune_socket(made.socket.get());
    made.endpoint = std::make_unique<Endpoint>(made.socket.get());
    const int error = answer(made, peer, std::chrono::steady_clock::now() + kHelloPatience);
    // Its descriptors did not fit into this process and are lost; the connector is refused.
    if (error == EMFILE || error == ENFILE || error == ENOMEM) return error;
    if (error != 0) continue;  // it went away, or is none of ours: on to the next
    accepted = std::move(made);
    return 0;
  }
  return EAGAIN;
}

/// Makes the endpoint of an accepted socket connected.
int Endpoint::answer(Opened& made, scif_portID& peer, fabric::Deadline patience) {
  const int socket = made.socket.get();
  Endpoint& endpoint = *made.endpoint;
  fabric::shm::Packet packet;
  if (const int error = receive_hello(socket, packet, patience); error != 0) return error;
  peer = {.node = packet.hello.node, .port = packet.hello.port};
  try {
    fabric::shm::OwnSide own(offer());
    const auto hello = own.hello(own_node(), port_);
    const auto descriptors = own.descriptors();
    Peer who = fabric::shm::credentials(socket);
    who.address = Address{.fabric = "shm", .node = peer.node, .port = peer.port};
    auto connection =
        std::make_unique<fabric::shm::ShmConnection>(std::move(own), UniqueFd(), std::move(packet), std::move(who));
    if (const int error = fabric::shm::send_packet(socket, hello, descriptors); error != 0) return ECONNRESET;
    connection->handed_over();
    endpoint.link_ = std::make_unique<Link>(endpoint.slot_, endpoint.line_, socket, std::move(connection));
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
