// SPDX-License-Identifier: Apache-2.0
// How endpoints meet, as far as the fabric has a say in it: what ports are called and which are in use, which process
// is at the other end, and the two hellos that make a connection of a socket (attempt.hpp has the order). This is the
// one place of the adapter that knows which fabric that is; another fabric goes here.
//
// A socket stays the endpoint's: the connection neither closes it nor learns from it of the peer's end. All calls from
// any thread; none blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include <scif.h>

#include "fabric/connection.hpp"

namespace wherry::scif {

/// The nodes and ports in use by sockets of this user and job, as the kernel lists them.
struct Named {
  std::set<std::uint16_t> nodes;
  std::set<std::uint16_t> ports;  ///< of the node asked for
};
Named named_sockets(std::uint16_t node);

/// Binds `socket` to the name of a port. False: another socket has it.
bool bind_to(int socket, std::uint16_t node, std::uint16_t port);

/// Connects `socket` to the listener of a port. False: there is none, or its backlog is full.
bool connect_to(int socket, const scif_portID& port);

/// Whether the process at the other end runs for this process's user. Throws Error.
bool is_of_own_user(int socket);

/// The process at the other end, which is that of `port`. Throws Error.
Peer peer_behind(int socket, const scif_portID& port);

/// What a peer says of itself, with its memory.
class PeersHello {
 public:
  PeersHello();
  PeersHello(PeersHello&&) noexcept;
  ~PeersHello();

  /// Takes the next packet from a socket. Returns 0; EAGAIN: none is there; ECONNRESET: the peer is gone; EMFILE: the
  /// peer's memory found no free descriptor here; EPROTO: it is no hello of an endpoint.
  int receive(int socket);
  /// Once it is received: the port that the peer speaks for.
  [[nodiscard]] scif_portID port() const;

 private:
  friend class OwnHalf;
  struct Packet;
  std::unique_ptr<Packet> packet_;
};

/// This side's half of a connection: its memory, which the peer reaches once both sides have the other's hello.
class OwnHalf {
 public:
  /// Throws Error(EMFILE, ENOMEM ...).
  explicit OwnHalf(const fabric::Offer& offer);
  OwnHalf(OwnHalf&&) noexcept;
  ~OwnHalf();

  /// Says hello for this process's node and `port`. False: the peer is gone, or does not take it.
  [[nodiscard]] bool send_hello(int socket, std::uint16_t port) const;
  /// The side that connects: both hellos have been exchanged. Throws Error; EPROTO: the peer's memory is not to be
  /// trusted.
  std::unique_ptr<fabric::Connection> join(PeersHello hello, const Peer& peer) &&;
  /// The side that accepts: says hello for `port` once the peer's memory is mapped. Throws the same; null: the peer is
  /// gone.
  std::unique_ptr<fabric::Connection> answer(PeersHello hello, const Peer& peer, int socket, std::uint16_t port) &&;

 private:
  struct Side;
  std::unique_ptr<Side> side_;
};

}  // namespace wherry::scif
