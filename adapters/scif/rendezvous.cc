// SPDX-License-Identifier: Apache-2.0
// On the fabric shm: ports are abstract Unix sockets, and the hellos are its handshake.
#include "adapters/scif/rendezvous.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "adapters/scif/link.hpp"
#include "fabric/shm/connection.hpp"
#include "fabric/shm/socket_names.hpp"

namespace wherry::scif {

namespace shm = fabric::shm;

struct PeersHello::Packet : shm::Packet {};

struct OwnHalf::Side : shm::OwnSide {
  using OwnSide::OwnSide;
};

namespace {

/// The common beginning of the names of this user's ports in this job: "wherry/USER/JOB/".
std::string common_name() {
  const shm::SocketName name = shm::socket_name(0, 0);
  const std::string whole(name.address.sun_path + 1, name.length - offsetof(sockaddr_un, sun_path) - 1);
  return whole.substr(0, whole.rfind('/') + 1);
}

/// "NODE:PORT"
bool parse(const std::string& text, std::uint16_t& node, std::uint16_t& port) {
  const char* const end = text.c_str() + text.size();
  const auto [colon, bad_node] = std::from_chars(text.c_str(), end, node);
  if (bad_node != std::errc() || colon == end || *colon != ':') return false;
  const auto [last, bad_port] = std::from_chars(colon + 1, end, port);
  return bad_port == std::errc() && last == end;
}

}  // namespace

Named named_sockets(std::uint16_t node) {
  Named named;
  const std::string common = "@" + common_name();
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    const std::size_t at = line.find(common);
    std::uint16_t its_node = 0;
    std::uint16_t its_port = 0;
    if (at == std::string::npos || !parse(line.substr(at + common.size()), its_node, its_port)) continue;
    named.nodes.insert(its_node);
    if (its_node == node) named.ports.insert(its_port);
  }
  return named;
}

bool bind_to(int socket, std::uint16_t node, std::uint16_t port) {
  const shm::SocketName name = shm::socket_name(node, port);
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0;
}

bool connect_to(int socket, const scif_portID& port) {
  const shm::SocketName name = shm::socket_name(port.node, port.port);
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0;
}

bool is_of_own_user(int socket) { return shm::same_user(shm::credentials(socket)); }

Peer peer_behind(int socket, const scif_portID& port) {
  Peer peer = shm::credentials(socket);
  peer.address = Address{.fabric = "shm", .node = port.node, .port = port.port};
  return peer;
}

PeersHello::PeersHello() : packet_(std::make_unique<Packet>()) {}
PeersHello::PeersHello(PeersHello&&) noexcept = default;
PeersHello::~PeersHello() = default;

int PeersHello::receive(int socket) {
  if (const int error = shm::receive_packet(socket, *packet_); error != 0) return error;
  const layout::ShmHello& hello = packet_->hello;
  fabric::Greeting greeting;
  static_assert(sizeof hello.greeting == sizeof greeting);
  std::memcpy(greeting.data(), hello.greeting, greeting.size());
  return fits(greeting, hello.segment_bytes) ? 0 : EPROTO;
}

scif_portID PeersHello::port() const { return {.node = packet_->hello.node, .port = packet_->hello.port}; }

OwnHalf::OwnHalf(const fabric::Offer& offer) : side_(std::make_unique<Side>(offer)) {}
OwnHalf::OwnHalf(OwnHalf&&) noexcept = default;
OwnHalf::~OwnHalf() = default;

bool OwnHalf::send_hello(int socket, std::uint16_t port) const {
  return shm::send_packet(socket, side_->hello(own_node(), port), side_->descriptors()) == 0;
}

std::unique_ptr<fabric::Connection> OwnHalf::join(PeersHello hello, const Peer& peer) && {
  shm::PeersSide peers(std::move(*hello.packet_), peer.address);
  return std::make_unique<shm::ShmConnection>(std::move(*side_), std::move(peers), UniqueFd(), peer);
}

std::unique_ptr<fabric::Connection> OwnHalf::answer(PeersHello hello, const Peer& peer, int socket,
                                                    std::uint16_t port) && {
  const layout::ShmHello own = side_->hello(own_node(), port);
  const auto descriptors = side_->descriptors();
  shm::PeersSide peers(std::move(*hello.packet_), peer.address);
  auto connection = std::make_unique<shm::ShmConnection>(std::move(*side_), std::move(peers), UniqueFd(), peer);
  if (shm::send_packet(socket, own, descriptors) != 0) return nullptr;
  connection->handed_over();
  return connection;
}

}  // namespace wherry::scif
