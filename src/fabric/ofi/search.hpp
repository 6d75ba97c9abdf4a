// SPDX-License-Identifier: Apache-2.0
// Searches the ports of one address of a host until a listener answers yes, and then meets it. Asks the ports in their
// order. If a port does not answer soon, the next ones are asked in parallel.
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

/// Not thread-safe; never blocks.
class Search {
 public:
  using Clock = Timer::Clock;
  enum class State : std::uint8_t {
    idle,        ///< not begun, or stopped
    connecting,  ///< connecting to ports over TCP
    asked,       ///< at least one port was asked: "are you (job, node, port)?"
    introduced,  ///< a port answered yes; the hello was sent
    received,    ///< the listener's fabric has the hello; the program has not accepted yet
    met,
    ended,  ///< no port of this pass is left, or the address cannot be reached
  };

  /// @param wanted  must outlive this object
  /// @param id      identifies its events in `poller`
  Search(const Wanted& wanted, const SocketAddress& address, int poller, std::uint64_t id);

  /// Begins a pass, numbered from 0. Each pass asks the first candidates, and some others than the previous pass; with
  /// `all` it asks all ports. A pass ends after Settings::host_timeout + Probe::kAnswerTime at the latest, counted from
  /// the last answer before a port was silent. Throws Error(EMFILE).
  void begin(std::size_t pass, bool all);
  void stop();
  /// Continues. Call it for each event of its sockets, and at `limit`. Throws Error(EMFILE).
  void advance(Clock::time_point now);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool runs() const { return state_ > State::idle && state_ < State::met; }
  [[nodiscard]] bool is_answered() const { return state_ >= State::introduced && state_ <= State::met; }
  /// Returns when to call advance() next without an event; the maximum of the clock: never.
  [[nodiscard]] Clock::time_point limit() const { return limit_; }
  /// Returns the gravest failure so far.
  [[nodiscard]] const Failure& failure() const { return failure_; }
  /// Returns the failure to report if the search were given up now: what it waits for.
  [[nodiscard]] Failure pending() const;
  /// Returns the number of ports that have answered, but not with yes.
  [[nodiscard]] std::size_t answers() const { return answers_; }
  /// Returns the meeting. Only in state `met`.
  Meeting take();

 private:
  [[nodiscard]] std::size_t candidates() const;
  [[nodiscard]] std::size_t candidate(std::size_t index) const;
  /// Returns the next candidate's index in the order; empty if none is left.
  std::optional<std::size_t> take_candidate();

  void begin_waiting();
  /// Whether the oldest probe has not waited longer than this host's answers usually take.
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
  std::size_t next_ = 0;           ///< the next candidate of this pass
  std::deque<std::size_t> again_;  ///< earlier candidates, by index in the order, that must be asked again
  std::list<Probe> probes_;        ///< while connecting or asked; oldest first
  Clock::time_point pass_limit_ = Clock::time_point::max();
  Clock::time_point next_probe_ = Clock::time_point::max();
  bool is_host_there_ = false;  ///< the host has answered at some port in this pass
  bool is_any_silent_ = false;  ///< some port has not answered in time in this pass
  std::size_t answers_ = 0;
  Clock::duration patience_{};  ///< twice the longest answer time of this pass, within limits; 0: no answer yet
  // The port that answered yes.
  SocketAddress tried_;
  UniqueFd socket_;
  Clock::time_point limit_ = Clock::time_point::max();
  Transcript transcript_;
  Incoming incoming_;
  Failure failure_;
  Introduction peer_;
};

}  // namespace wherry::fabric::ofi
