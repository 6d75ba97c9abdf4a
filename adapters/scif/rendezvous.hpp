// SPDX-License-Identifier: Apache-2.0
// The part of connecting that depends on the fabric: names of ports and which are in use, the process at the other end,
// and the two hellos that make a socket a connection (attempt.hpp has their order). No other file of the adapter
// depends on the fabric; support for another one goes here.
//
// The socket remains the endpoint's: the connection neither closes it nor learns of the peer's end from it. All calls
// from any thread; none blocks.
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

/// Binds `socket` to the name of a port. Returns false if another socket has it.
bool bind_to(int socket, std::uint16_t node, std::uint16_t port);

/// Connects `socket` to the listener of a port. Returns false if there is none, or its backlog is full.
bool connect_to(int socket, const scif_portID& port);

/// Whether the process at the other end runs for this process's user. Throws Error.
bool is_of_own_user(int socket);

/// Returns the process at the other end, with `port` as its address. Throws Error.
Peer peer_behind(int socket, const scif_portID& port);

/// A peer's hello, with its memory.
class PeersHello {
 public:
  PeersHello();
  PeersHello(PeersHello&&) noexcept;
  ~PeersHello();

  /// Takes the next packet from a socket. Returns 0; EAGAIN if there is none; ECONNRESET if the peer is gone; EMFILE if
  /// no descriptor is free here for the peer's memory; EPROTO if it is not the hello of an endpoint.
  int receive(int socket);
  /// The port in a hello that was received.
  [[nodiscard]] scif_portID port() const;

 private:
  friend class OwnHalf;
  struct Packet;
  std::unique_ptr<Packet> packet_;
};

/// This side's half of a connection: its memory, which the peer reaches once hellos have been exchanged.
class OwnHalf {
 public:
  /// Throws Error(EMFILE, ENOMEM ...).
  explicit OwnHalf(const fabric::Offer& offer);
  OwnHalf(OwnHalf&&) noexcept;
  ~OwnHalf();

  /// Sends a hello for this process's node and `port`. Returns false if the peer is gone or does not take it.
  [[nodiscard]] bool send_hello(int socket, std::uint16_t port) const;
  /// For the side that connects, after both hellos. Throws Error: EPROTO if the peer's memory cannot be trusted.
  std::unique_ptr<fabric::Connection> join(PeersHello hello, const Peer& peer) &&;
  /// For the side that accepts: maps the peer's memory, then sends the hello for `port`. Throws Error as join().
  /// Returns null if the peer is gone.
  std::unique_ptr<fabric::Connection> answer(PeersHello hello, const Peer& peer, int socket, std::uint16_t port) &&;

 private:
  struct Side;
  std::unique_ptr<Side> side_;
};

}  // namespace wherry::scif
