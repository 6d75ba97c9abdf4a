// SPDX-License-Identifier: Apache-2.0
// Asks one TCP port of a host whether it belongs to a listener for (job, node, port).
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

/// Why a meeting failed. Of several causes the gravest is reported.
struct Failure {
  enum class Gravity : std::uint8_t { none, nobody_listens, unreachable, no_answer, full, version, key, lost };

  Gravity gravity = Gravity::none;
  int error = 0;
  std::string advice;

  /// Returns whether further attempts are useless: a listener answered yes, and then refused or did not answer.
  [[nodiscard]] bool is_final() const { return gravity == Gravity::lost; }
};

/// The data that all searches of a connector share.
struct Wanted {
  Settings settings;
  std::uint64_t job;
  std::uint16_t node;
  std::uint16_t port;
  PortOrder order;
  Introduction own;
};

/// A connection to one port, with a question. Never blocks. One thread.
class Probe {
 public:
  using Clock = Timer::Clock;
  /// How long a port that has accepted the connection may be silent. Longer: another program, or a stopped process.
  static constexpr auto kAnswerTime = std::chrono::seconds(2);

  enum class Found : std::uint8_t {
    nothing_yet,
    no,           ///< the listener is not at this port
    late,         ///< no answer came in time
    unreachable,  ///< no port of this address can help
    yes,          ///< the listener is here and expects the hello
  };

  /// Begins to connect to the port at index `candidate` of the order. Throws Error(EMFILE).
  /// @param wanted  must outlive this object
  /// @param id      identifies its events in `poller`
  Probe(const Wanted& wanted, const SocketAddress& address, std::size_t candidate, int poller, std::uint64_t id);

  /// Continues. Call it for each event of its socket, and at `limit`, until it returns a result other than
  /// `nothing_yet`. Throws Error(ENOSPC).
  Found advance(Clock::time_point now);

  [[nodiscard]] std::size_t candidate() const { return candidate_; }
  [[nodiscard]] const SocketAddress& tried() const { return tried_; }
  [[nodiscard]] Clock::time_point begun() const { return begun_; }
  [[nodiscard]] Clock::time_point limit() const { return limit_; }
  /// Returns whether the host has accepted the connection, and the question was sent.
  [[nodiscard]] bool is_asked() const { return is_asked_; }
  /// Returns whether the host has answered in any way, perhaps by a refusal.
  [[nodiscard]] bool is_host_there() const { return is_host_there_; }
  /// Returns why the result is not `yes`; while there is no result: what it waits for.
  [[nodiscard]] Failure failure() const;

  // Only after the result `yes`.
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
  // Most ports refuse. The following is created only for those that do not.
  std::optional<Transcript> transcript_;
  Incoming incoming_;
  bool is_asked_ = false;
  bool is_host_there_ = false;
  Found settled_ = Found::nothing_yet;
  std::optional<Failure> failure_;
};

}  // namespace wherry::fabric::ofi
