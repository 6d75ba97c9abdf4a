// SPDX-License-Identifier: Apache-2.0
// How two processes on two hosts meet: over TCP, before any data endpoint exists. Both sides prove that they hold the
// same key (WHERRY_KEY), and introduce themselves. The TCP connection then stays open and idle for the life of the
// data connection: it is the sign of life of the peer's host.
//
//   connector                                             listener
//     | -- Question: are you (job, node, port)? + nonce ---> |
//     | <-- Answer: yes, or no + nonce --------------------- |
//     | -- Hello + proof, 9000 bytes ----------------------> |
//     | <-- Receipt, 9000 bytes ---------------------------- |  the proof is good; the program has not accepted yet
//     | <-- Hello + proof, 9000 bytes ---------------------- |  when the program accepts
//
// Everything here is driven by descriptors: poll `descriptor()` for reading and call `advance()`, which never blocks.
// Not thread-safe: one thread drives an object, or callers lock. Both sides run on one thread as well as on two.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_file.hpp"
#include "base/port_range.hpp"
#include "base/unique_fd.hpp"
#include "fabric/bell.hpp"
#include "fabric/ofi/introduction.hpp"
#include "fabric/ofi/socket_address.hpp"

namespace wherry::fabric::ofi {

/// What admits one data endpoint. Derived from the key and from both hellos: both sides compute the same one, it is
/// never sent here, and no two meetings have the same.
using Token = std::array<std::byte, 32>;

/// Two processes that have met. The owner keeps `socket` open, sends nothing on it, and takes its end (POLLIN with end
/// of file, POLLHUP, POLLERR) for the death of the peer, its host or the link: within Settings::host_timeout, while a
/// peer that is merely stopped stays alive.
struct Meeting {
  UniqueFd socket;
  Introduction peer;
  SocketAddress local;   ///< the data endpoint binds to this address, with a port of its own
  SocketAddress remote;  ///< the connector's data endpoint dials this address, with the port of the listener's data
  Token token{};
};

/// What all processes of a job agree upon.
struct Settings {
  Key key{};
  std::string job;
  PortRange ports{47000, 47999};
  /// How long a host or a link may be silent before the connection ends.
  std::chrono::milliseconds host_timeout{5000};

  /// From WHERRY_KEY, WHERRY_JOB, WHERRY_PORTS, WHERRY_HOST_TIMEOUT. Throws Error that says what to do: no key
  /// (EACCES), a key that others may read (EACCES), a malformed one (EINVAL).
  static Settings from_environment();
};

/// Holds a TCP port for one (node, port), and meets connectors there. Destroying it frees the port and drops the
/// connectors that wait.
class RendezvousListener {
 public:
  /// A connector that has proved to hold the key and waits to be accepted.
  struct Visitor {
    Introduction peer;
    SocketAddress local;
    SocketAddress remote;
  };

  /// Empty `port`: a free one. Throws Error: EADDRINUSE (another process of this host listens at that node and port, or
  /// no TCP port of the range is free), EMFILE, ENOMEM.
  RendezvousListener(const Settings& settings, std::uint16_t node, std::optional<std::uint16_t> port);
  RendezvousListener(RendezvousListener&&) noexcept;
  RendezvousListener& operator=(RendezvousListener&&) noexcept;
  ~RendezvousListener();

  [[nodiscard]] std::uint16_t port() const;      ///< of Wherry's address
  [[nodiscard]] std::uint16_t tcp_port() const;  ///< the one held

  /// Readable while `advance` has something to do: an epoll descriptor, owned by this object.
  [[nodiscard]] int descriptor() const;
  /// Takes connectors, hears them and drops those that are late, say nothing or say nonsense. Throws Error(EMFILE,
  /// ENFILE, ENOMEM, ENOBUFS) while this process lacks the means for another connector; it may be called again.
  void advance();

  /// The connector that has waited longest. Null: none waits. Valid until the next call of advance, accept or refuse.
  [[nodiscard]] const Visitor* visitor() const;
  /// Answers the visitor, which then is one no longer; the meeting's socket is the caller's. Empty: it has gone.
  std::optional<Meeting> accept(const Introduction& own);
  /// Drops the visitor. Its connector throws Error(ECONNREFUSED) with this reason (up to 255 bytes are sent).
  void refuse(std::string_view reason);

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// One connector's search for (node, port) on a host, and the meeting there. Destroying it gives up.
class RendezvousConnector {
 public:
  /// `host`: a name or an address. Looks up its addresses, which blocks as long as the system's resolver does, and
  /// starts to connect to them. While the address is not listened on, it is looked for again until `until` (empty: one
  /// attempt). A meeting that is not made until then fails.
  /// Throws Error: ENOENT (no such host), EMFILE, ENOMEM.
  RendezvousConnector(const Settings& settings, const std::string& host, std::uint16_t node, std::uint16_t port,
                      Introduction own, const Deadline& until);
  RendezvousConnector(RendezvousConnector&&) noexcept;
  RendezvousConnector& operator=(RendezvousConnector&&) noexcept;
  ~RendezvousConnector();

  /// Readable while `advance` has something to do: an epoll descriptor, owned by this object.
  [[nodiscard]] int descriptor() const;
  /// Returns the meeting once the listener has accepted, and once only; its socket is then the caller's. Throws Error,
  /// and then always: ECONNREFUSED (no listener there, or it refused), ETIMEDOUT, EACCES (another key),
  /// EPROTO (another version), ECONNRESET (the listener ended), EHOSTUNREACH. The text says what to do.
  std::optional<Meeting> advance();
  /// Ends a search for a caller whose time is over: throws Error with what is known of the cause.
  [[noreturn]] void give_up();
  /// True while no listener for (node, port) has been found.
  [[nodiscard]] bool waits_for_listener() const;
  /// How many ports have answered that no such listener is there: while it grows, the search gets on.
  [[nodiscard]] std::size_t answers() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace wherry::fabric::ofi
