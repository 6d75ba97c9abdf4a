// SPDX-License-Identifier: Apache-2.0
// Connectors that the kernel has let in and that have not said what they want. That comes right behind the connection,
// or never: so their number and their time are bounded.
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
  std::uint64_t companion = 0;  ///< its number, if it is one
  bool ended = false;           ///< a companion whose connector has closed it
  bool waits = false;           ///< its request stays in its socket until this process has the means for it
};

class PendingConnectors {
 public:
  /// `listener` names the listener in errors. Throws Error(EMFILE, ENFILE, ENOMEM).
  explicit PendingConnectors(std::string listener);

  /// Readable while one of them has something to say, or `watch`ed sockets have.
  [[nodiscard]] int descriptor() const { return poller_.get(); }
  /// Throws Error(ENOSPC, ENOMEM).
  void watch(int socket);

  /// Gives up after `timeout`. Throws as watch does.
  void add(UniqueFd socket, Peer peer, std::chrono::milliseconds timeout);
  [[nodiscard]] std::size_t size() const { return waiting_.size(); }

  /// Asks the kernel which have something to say, unless some that had are still to be looked at.
  void look();
  /// The next of those, in the order in which they came; null: no more until the next look.
  Pending* next_ready();
  /// A companion has ended: it has nothing more to say, and waits only to be taken.
  void silence(Pending& pending) noexcept;
  /// Takes it out.
  Pending take(Pending& pending);
  [[nodiscard]] bool has_companion(std::uint64_t number, const Peer& peer) const;
  /// Takes out the companion of that number, of the same process. Invalid: there is none.
  UniqueFd take_companion(std::uint64_t number, const Peer& peer);
  /// Takes out one that has said nothing for too long, or as a companion.
  /// @param companions  false: those stay
  std::optional<Pending> take_late(Pending::Clock::time_point now, bool companions);
  /// Takes out a companion that has ended, or else the one that has waited longest without having said anything, or
  /// else as a companion. There is one.
  Pending take_least_promising();
  /// Takes out the one that has waited longest without having said anything.
  std::optional<Pending> take_silent();

 private:
  std::string listener_;
  UniqueFd poller_;
  std::list<Pending> waiting_;  ///< in the order in which they came
  std::unordered_map<int, std::list<Pending>::iterator> by_socket_;
  std::deque<int> ready_;
};

}  // namespace wherry::fabric::shm
