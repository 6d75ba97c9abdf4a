// SPDX-License-Identifier: Apache-2.0
// The connections to a listener's TCP port: of connectors, of port scanners, of programs that mistake the port. Their
// number is bounded, and so is the time until a caller has proved that it holds the key.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/limited_log.hpp"
#include "base/unique_fd.hpp"
#include "fabric/ofi/meeting_socket.hpp"
#include "fabric/ofi/proof.hpp"
#include "fabric/ofi/rendezvous.hpp"

namespace wherry::fabric::ofi {

/// One accepted TCP connection.
struct Caller {
  UniqueFd socket;
  Timer::Clock::time_point give_up;
  Transcript transcript;
  Incoming incoming;
  bool asked = false;  ///< the question has arrived; a hello must follow
  RendezvousListener::Visitor visitor;
};

/// One thread at a time.
class Callers {
 public:
  /// Limit of strangers: callers without a proof. Beyond it, the one that has been silent longest is dropped.
  static constexpr std::size_t kMostStrangers = 256;
  /// Limit of visitors: callers with a proof that wait to be accepted. Beyond it, connectors are told to try again.
  static constexpr std::size_t kMostVisitors = 1024;

  Callers(const Settings& settings, std::uint16_t node, std::uint16_t port, int poller, std::uint64_t first_id);

  /// Adds a caller. False, with errno, if the kernel has no memory to poll it.
  bool add(UniqueFd socket);
  /// Handles an event on the socket of a caller.
  void hear(std::uint64_t id);
  /// Drops strangers whose time is over.
  void drop_late(Timer::Clock::time_point now);
  /// Returns when the next stranger is late; the maximum of the clock if there is none.
  [[nodiscard]] Timer::Clock::time_point next_late() const;

  [[nodiscard]] const RendezvousListener::Visitor* visitor() const;
  std::optional<Meeting> accept(const Introduction& own);
  void refuse(std::string_view reason);

 private:
  using List = std::map<std::uint64_t, Caller>;  // by id, so oldest first

  bool on_stranger(Caller& caller, bool& proved);
  bool on_question(Caller& caller);
  bool on_hello(Caller& caller);
  [[nodiscard]] bool is_nonsense(const Caller& caller) const;
  bool answer(Caller& caller, layout::Verdict verdict);
  bool drop(const Caller& caller, const std::string& why);
  Caller take_visitor();

  const Settings settings_;
  const std::uint64_t job_;
  const std::uint16_t node_;
  const std::uint16_t port_;
  const int poller_;
  std::uint64_t next_id_;
  List strangers_;
  List visitors_;
  log::LimitedLog log_{"connectors from other hosts"};
};

}  // namespace wherry::fabric::ofi
