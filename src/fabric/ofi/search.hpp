// SPDX-License-Identifier: Apache-2.0
// A connector's way along the ports of one address of a host, until a listener there says yes; then the meeting.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

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

class Search {
 public:
  using Clock = Timer::Clock;
  enum class State : std::uint8_t {
    idle,        ///< not begun, or stopped
    connecting,  ///< over TCP
    asked,       ///< "are you (job, node, port)?"
    introduced,  ///< it is: the hello is under way
    received,    ///< the listener's fabric has it; the program has not accepted yet
    met,
    ended,  ///< no port of this pass is left, or the address cannot be reached
  };

  /// `wanted` outlives this object. `id`: in the poller's events.
  Search(const Wanted& wanted, const SocketAddress& address, int poller, std::uint64_t id);

  /// Asks candidates of the pass, numbered from 0. Each pass asks the first candidates again, and others than the pass
  /// before; `all`: all ports. Throws Error(EMFILE).
  void begin(std::size_t pass, bool all);
  void stop();
  /// Does what is due: called for an event of its socket, and at `limit`. Throws Error(EMFILE).
  void advance(Clock::time_point now);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool runs() const { return state_ > State::idle && state_ < State::met; }
  [[nodiscard]] bool is_answered() const { return state_ >= State::introduced && state_ <= State::met; }
  /// When what is under way has taken too long; the clock's last moment: nothing is bounded.
  [[nodiscard]] Clock::time_point limit() const { return limit_; }
  /// The gravest since the search was made.
  [[nodiscard]] const Failure& failure() const { return failure_; }
  /// What the search has been waiting for.
  [[nodiscard]] Failure pending() const;
  Meeting take();

 private:
  [[nodiscard]] std::size_t candidates() const;
  [[nodiscard]] std::size_t candidate(std::size_t index) const;
  void next_port();
  bool connect();
  bool on_connect_error(int error);
  void on_connected();
  void on_answer();
  void on_receipt();
  void on_hello();
  void on_ended(int error);
  void listen_for(State state, std::size_t bytes, Clock::duration time);
  void fail(Failure::Gravity gravity, int error, std::string advice);
  void end();
  [[nodiscard]] std::string where() const;

  const Wanted& wanted_;
  SocketAddress address_;
  const int poller_;
  const std::uint64_t id_;
  State state_ = State::idle;
  std::size_t pass_ = 0;
  bool all_ = false;
  std::size_t next_ = 0;  ///< candidate of this pass
  SocketAddress tried_;
  UniqueFd socket_;
  Clock::time_point limit_ = Clock::time_point::max();
  Transcript transcript_;
  Incoming incoming_;
  Failure failure_;
  Introduction peer_;
};

}  // namespace wherry::fabric::ofi
