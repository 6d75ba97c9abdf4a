// SPDX-License-Identifier: Apache-2.0
// Connectors whose socket was accepted and whose request was not answered yet. A request comes right after the
// connection or never, so the number of these connectors and their time are bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include <wherry/address.hpp>

#include "base/unique_fd.hpp"

namespace wherry::fabric::shm {

struct Pending {
  using Clock = std::chrono::steady_clock;

  UniqueFd socket;
  Peer peer;
  Clock::time_point give_up;
  std::uint64_t companion = 0;  ///< the number of a companion; 0: it is not one
  bool ended = false;           ///< a companion that its connector has closed
  bool waits = false;           ///< its request stays in its socket until this process has the resources to answer it
};

/// One thread at a time.
class PendingConnectors {
 public:
  /// `listener` names the listener in errors. Throws Error(EMFILE, ENFILE, ENOMEM).
  explicit PendingConnectors(std::string listener);

  /// Returns a descriptor that is readable while a connector, or a socket passed to watch(), is readable.
  [[nodiscard]] int descriptor() const { return poller_.get(); }
  /// Adds a socket to the descriptor. Throws Error(ENOSPC, ENOMEM).
  void watch(int socket);

  /// Adds a connector, which is late after `timeout`. Throws as watch().
  void add(UniqueFd socket, Peer peer, std::chrono::milliseconds timeout);
  [[nodiscard]] std::size_t size() const { return waiting_.size(); }

  /// Asks the kernel which connectors are readable. Does nothing while next_ready() has some left.
  void look();
  /// Returns the next readable connector. Null: none is left until the next look.
  Pending* next_ready();
  /// Marks a companion as ended: it is not polled any more, and waits only to be taken.
  void silence(Pending& pending) noexcept;
  /// Removes and returns a connector.
  Pending take(Pending& pending);
  [[nodiscard]] bool has_companion(std::uint64_t number, const Peer& peer) const;
  /// Removes the companion of that number and process, and returns its socket. Invalid if there is none.
  UniqueFd take_companion(std::uint64_t number, const Peer& peer);
  /// Removes a connector that has sent no request in time, or a companion whose request did not come in time.
  /// @param companions  false: companions stay
  std::optional<Pending> take_late(Pending::Clock::time_point now, bool companions);
  /// Removes the connector that is least likely to be completed: a companion that has ended; else the one that has
  /// waited longest without sending anything; else the oldest. There must be one.
  Pending take_least_promising();
  /// Removes the connector that has waited longest without sending anything.
  std::optional<Pending> take_silent();

 private:
  std::string listener_;
  UniqueFd poller_;
  std::list<Pending> waiting_;  ///< oldest first
  std::unordered_map<int, std::list<Pending>::iterator> by_socket_;
  std::deque<int> ready_;
};

}  // namespace wherry::fabric::shm
