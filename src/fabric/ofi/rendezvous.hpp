// SPDX-License-Identifier: Apache-2.0
// How two processes on two hosts meet: over TCP, before any data endpoint exists. Both sides prove that they hold the
// same key (WHERRY_KEY), and introduce themselves. The TCP connection then stays open and idle as long as the data
// connection: its end tells the death of the peer or of its host.
//
//   connector                                             listener
//     | -- Question: are you (job, node, port)? + nonce ---> |
//     | <-- Answer: yes, or no + nonce --------------------- |
//     | -- Hello + proof, 9000 bytes ----------------------> |
//     | <-- Receipt, 9000 bytes ---------------------------- |  the proof is good; the program has not accepted yet
//     | <-- Hello + proof, 9000 bytes ---------------------- |  when the program accepts
//
// Driven by descriptors: poll `descriptor()` for reading, then call `advance()`, which never blocks. Not thread-safe.
// Both sides may run on the same thread.
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

/// Admits one data endpoint. Both sides derive it from the key and both hellos. It is never sent over this connection,
/// and is different for each meeting.
using Token = std::array<std::byte, 32>;

/// The result of a rendezvous. The owner keeps `socket` open and sends nothing on it. Its end (POLLIN with end of file,
/// POLLHUP, POLLERR) means that the peer, its host or the link is dead. It comes within Settings::host_timeout. A peer
/// that is merely stopped stays alive.
struct Meeting {
  UniqueFd socket;
  Introduction peer;
  SocketAddress local;   ///< the data endpoint binds to this address, with another port
  SocketAddress remote;  ///< the connector's data endpoint connects to this address, at the listener's data port
  Token token{};
};

/// The settings that all processes of a job must have in common.
struct Settings {
  Key key{};
  std::string job;
  PortRange ports{47000, 47999};
  /// How long a host or a link may be silent before the connection ends.
  std::chrono::milliseconds host_timeout{5000};

  /// Reads WHERRY_KEY, WHERRY_JOB, WHERRY_PORTS, WHERRY_HOST_TIMEOUT. Throws Error: EACCES (no key, or others may read
  /// it), EINVAL (a malformed key).
  static Settings from_environment();
};

/// Listens on a TCP port for one (node, port), and meets connectors there. Its destruction frees the port and drops the
/// waiting connectors.
class RendezvousListener {
 public:
  /// A connector that has proved to hold the key and waits to be accepted.
  struct Visitor {
    Introduction peer;
    SocketAddress local;
    SocketAddress remote;
  };

  /// Empty `port`: chooses a free one. Throws Error: EADDRINUSE (another process of this host listens at that node and
  /// port, or no TCP port of the range is free), EMFILE, ENOMEM.
  RendezvousListener(const Settings& settings, std::uint16_t node, std::optional<std::uint16_t> port);
  RendezvousListener(RendezvousListener&&) noexcept;
  RendezvousListener& operator=(RendezvousListener&&) noexcept;
  ~RendezvousListener();

  [[nodiscard]] std::uint16_t port() const;      ///< the port of Wherry's address
  [[nodiscard]] std::uint16_t tcp_port() const;  ///< the TCP port on which it listens

  /// Returns an epoll descriptor that is readable while `advance` has something to do. This object owns it.
  [[nodiscard]] int descriptor() const;
  /// Accepts TCP connections, handles messages, and drops connectors that are late or send invalid data. Throws
  /// Error(EMFILE, ENFILE, ENOMEM, ENOBUFS) while this process has no resources for another connector; it may be called
  /// again.
  void advance();

  /// Returns the connector that has waited longest; null if none waits. Valid until the next call of advance, accept or
  /// refuse.
  [[nodiscard]] const Visitor* visitor() const;
  /// Accepts the visitor and removes it. The caller owns the meeting's socket. Empty if the visitor has gone.
  std::optional<Meeting> accept(const Introduction& own);
  /// Refuses the visitor and removes it. Its connector throws Error(ECONNREFUSED) with the first 255 bytes of `reason`.
  void refuse(std::string_view reason);

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Searches for the listener of (node, port) on a host, and meets it. Its destruction cancels the attempt.
class RendezvousConnector {
 public:
  /// Starts to look up the addresses of the host, and to connect to them. While there is no listener, the search is
  /// repeated until `until`; the meeting then fails. Throws Error: EMFILE, ENOMEM, EAGAIN (no further thread).
  /// @param host   a name or an address
  /// @param until  empty: one attempt
  RendezvousConnector(const Settings& settings, const std::string& host, std::uint16_t node, std::uint16_t port,
                      Introduction own, const Deadline& until);
  RendezvousConnector(RendezvousConnector&&) noexcept;
  RendezvousConnector& operator=(RendezvousConnector&&) noexcept;
  ~RendezvousConnector();

  /// Returns an epoll descriptor that is readable while `advance` has something to do. This object owns it.
  [[nodiscard]] int descriptor() const;
  /// Returns the meeting once the listener has accepted, only once; the caller owns its socket. Throws Error, which all
  /// later calls throw again: ECONNREFUSED (no listener, or it refused), ETIMEDOUT, EACCES (another key), EPROTO
  /// (another version), ECONNRESET (the listener ended), EHOSTUNREACH, ENOENT (no such host). The text tells what to
  /// do.
  std::optional<Meeting> advance();
  /// Ends the search when the caller's time is over: throws Error with the gravest cause known.
  [[noreturn]] void give_up() const;
  /// Returns the advice of the error that give_up() would throw.
  [[nodiscard]] std::string obstacle() const;
  /// Returns true while no listener for (node, port) has been found.
  [[nodiscard]] bool waits_for_listener() const;
  /// Returns how many answers have come: that of the resolver, and those of ports that do not have the listener. While
  /// it grows, the search progresses.
  [[nodiscard]] std::size_t answers() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace wherry::fabric::ofi
