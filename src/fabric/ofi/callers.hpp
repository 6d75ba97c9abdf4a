// SPDX-License-Identifier: Apache-2.0
// What calls at a listener's TCP port: connectors, port scanners, programs that take it for another port. Bounded in
// number, and in time until it has proved to hold the key.
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

/// One connection that was taken.
struct Caller {
  UniqueFd socket;
  Timer::Clock::time_point give_up;
  Transcript transcript;
  Incoming incoming;
  bool asked = false;  ///< the question came; a hello is to follow
  RendezvousListener::Visitor visitor;
};

class Callers {
 public:
  /// Strangers: callers without a proof. With more, the one that has been silent longest is dropped.
  static constexpr std::size_t kMostStrangers = 256;
  /// Callers with a proof that wait to be accepted. With more, connectors are told to try again.
  static constexpr std::size_t kMostVisitors = 1024;

  Callers(const Settings& settings, std::uint16_t node, std::uint16_t port, int poller, std::uint64_t first_id);

  /// False, with errno: the kernel has no memory to poll it.
  bool add(UniqueFd socket);
  /// The socket of that caller has something to say.
  void hear(std::uint64_t id);
  void drop_late(Timer::Clock::time_point now);
  /// When the next is late; the clock's last moment: none.
  [[nodiscard]] Timer::Clock::time_point next_late() const;

  [[nodiscard]] const RendezvousListener::Visitor* visitor() const;
  std::optional<Meeting> accept(const Introduction& own);
  void refuse(std::string_view reason);

 private:
  using List = std::map<std::uint64_t, Caller>;  // by id, which is their order

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
