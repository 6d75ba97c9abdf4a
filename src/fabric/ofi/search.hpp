// SPDX-License-Identifier: Apache-2.0
// A connector's way along the ports of one address of a host, until a listener there says yes; then the meeting. Ports
// are asked in their order. One that has not answered soon is not waited for: the next are asked beside it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "fabric/ofi/meeting_socket.hpp"
#include "fabric/ofi/probe.hpp"
#include "fabric/ofi/proof.hpp"
#include "fabric/ofi/rendezvous.hpp"

namespace wherry::fabric::ofi {

class Search {
 public:
  using Clock = Timer::Clock;
  enum class State : std::uint8_t {
    idle,        ///< not begun, or stopped
    connecting,  ///< over TCP
    asked,       ///< a port at least: "are you (job, node, port)?"
    introduced,  ///< it is: the hello is under way
    received,    ///< the listener's fabric has it; the program has not accepted yet
    met,
    ended,  ///< no port of this pass is left, or the address cannot be reached
  };

  /// `wanted` outlives this object. `id`: in the poller's events.
  Search(const Wanted& wanted, const SocketAddress& address, int poller, std::uint64_t id);

  /// Asks candidates of the pass, numbered from 0. Each pass asks the first candidates again, and others than the pass
  /// before; `all`: all ports. It ends Probe::kAnswerTime after Settings::host_timeout at the latest, counted from the
  /// last port that answered before the first that did not. Throws Error(EMFILE).
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
  /// Ports that have answered, and not with yes.
  [[nodiscard]] std::size_t answers() const { return answers_; }
  Meeting take();

 private:
  [[nodiscard]] std::size_t candidates() const;
  [[nodiscard]] std::size_t candidate(std::size_t index) const;
  /// Its place in the order.
  std::optional<std::size_t> take_candidate();

  void begin_waiting();
  /// What is under way has not taken longer than answers of this host do.
  [[nodiscard]] bool answers_soon(Clock::time_point now) const;
  void ask_more(Clock::time_point now);
  bool begin_probe();
  bool advance_probe(std::list<Probe>::iterator probe, Clock::time_point now);
  void introduce(std::list<Probe>::iterator probe);
  void advance_meeting(Clock::time_point now);
  void go_on();
  void on_receipt();
  void on_hello();
  void on_ended(int error);
  void listen_for(State state, std::size_t bytes, Clock::duration time);
  void fail(Failure::Gravity gravity, int error, std::string advice);
  void fail(const Failure& failure) { fail(failure.gravity, failure.error, failure.advice); }
  void stop_probes();
  void end();
  [[nodiscard]] std::string where() const { return tried_.to_string(); }

  const Wanted& wanted_;
  SocketAddress address_;
  const int poller_;
  const std::uint64_t id_;
  State state_ = State::idle;
  std::size_t pass_ = 0;
  bool all_ = false;
  std::size_t next_ = 0;           ///< candidate of this pass
  std::deque<std::size_t> again_;  ///< places of candidates before it that were asked and not waited for
  std::list<Probe> probes_;        ///< while connecting or asked, the longest first
  Clock::time_point pass_limit_ = Clock::time_point::max();
  Clock::time_point next_probe_ = Clock::time_point::max();
  bool is_host_there_ = false;  ///< it has answered at any port of this pass
  bool is_any_silent_ = false;  ///< another port of this pass has not answered in time
  std::size_t answers_ = 0;
  Clock::duration patience_{};  ///< twice the longest time of an answer of this pass; 0: there is none
  // The port that said yes.
  SocketAddress tried_;
  UniqueFd socket_;
  Clock::time_point limit_ = Clock::time_point::max();
  Transcript transcript_;
  Incoming incoming_;
  Failure failure_;
  Introduction peer_;
};

}  // namespace wherry::fabric::ofi
