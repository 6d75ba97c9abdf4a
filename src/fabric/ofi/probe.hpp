// SPDX-License-Identifier: Apache-2.0
// One port of a host, asked whether a listener for (job, node, port) is there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.hpp"
#include "fabric/ofi/meeting_socket.hpp"
#include "fabric/ofi/ports.hpp"
#include "fabric/ofi/proof.hpp"
#include "fabric/ofi/rendezvous.hpp"

namespace wherry::fabric::ofi {

/// Why there is no meeting. Of several causes the gravest is reported.
struct Failure {
  enum class Gravity : std::uint8_t { none, nobody_listens, unreachable, no_answer, full, version, key, lost };

  Gravity gravity = Gravity::none;
  int error = 0;
  std::string advice;

  /// No further attempt can help: a listener said yes, and then no or nothing.
  [[nodiscard]] bool is_final() const { return gravity == Gravity::lost; }
};

/// What all searches of a connector have in common.
struct Wanted {
  Settings settings;
  std::uint64_t job;
  std::uint16_t node;
  std::uint16_t port;
  PortOrder order;
  Introduction own;
};

/// The connection to that port, as long as it lives. Never blocks.
class Probe {
 public:
  using Clock = Timer::Clock;
  /// What takes a connection and says nothing is another program, or a process that is stopped.
  static constexpr auto kAnswerTime = std::chrono::seconds(2);

  enum class Found : std::uint8_t {
    nothing_yet,
    no,           ///< not at this port
    late,         ///< nothing came in time
    unreachable,  ///< nor at any other port of this address
    yes,          ///< asks for the hello
  };

  /// Begins to connect to the port at that place of the order. `wanted` outlives this object. `id`: in the poller's
  /// events. Throws Error(EMFILE).
  Probe(const Wanted& wanted, const SocketAddress& address, std::size_t candidate, int poller, std::uint64_t id);

  /// Does what is due: called for an event of its socket, and at `limit`. Not any more once it is settled: anything but
  /// `nothing_yet`. Throws Error(ENOSPC).
  Found advance(Clock::time_point now);

  [[nodiscard]] std::size_t candidate() const { return candidate_; }
  [[nodiscard]] const SocketAddress& tried() const { return tried_; }
  [[nodiscard]] Clock::time_point begun() const { return begun_; }
  [[nodiscard]] Clock::time_point limit() const { return limit_; }
  /// The host has taken the connection.
  [[nodiscard]] bool is_asked() const { return is_asked_; }
  /// The host has sent something, if only a refusal.
  [[nodiscard]] bool is_host_there() const { return is_host_there_; }
  /// Once it is settled, and not by `yes`: why. Until then: what it waits for.
  [[nodiscard]] Failure failure() const;

  // Once it says yes.
  UniqueFd take_socket() { return std::move(socket_); }
  [[nodiscard]] const Transcript& transcript() const { return *transcript_; }

 private:
  Found settle(Found found, Failure::Gravity gravity, int error, std::string advice);
  Found on_connect_error(int error);
  Found on_connected();
  Found on_answer();
  [[nodiscard]] bool is_connected_with_itself() const;

  const Wanted& wanted_;
  const std::size_t candidate_;
  const SocketAddress tried_;
  const int poller_;
  const std::uint64_t id_;
  const Clock::time_point begun_ = Clock::now();
  UniqueFd socket_;
  Clock::time_point limit_;
  // Most ports refuse: what follows is made for those that do not.
  std::optional<Transcript> transcript_;
  Incoming incoming_;
  bool is_asked_ = false;
  bool is_host_there_ = false;
  Found settled_ = Found::nothing_yet;
  std::optional<Failure> failure_;
};

}  // namespace wherry::fabric::ofi
