// SPDX-License-Identifier: Apache-2.0
// Acceptor and connectors of a publisher or a subscriber: one port that it listens on, and any number of attempts to
// connect. May include: base, fabric.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <wherry/address.hpp>

#include "fabric/fabric.hpp"
#include "message/wait_set.hpp"

namespace wherry::message {

/// All calls throw Error.
class ConnectionSetup {
 public:
  /// `wait_set` is told of every descriptor that may have news for `join_new`.
  explicit ConnectionSetup(WaitSet& wait_set) : wait_set_(wait_set) {}

  /// The fabric of an address: the same for all of one publisher's or subscriber's.
  fabric::Fabric& fabric_of(const Address& address);
  void listen(const Address& address);
  /// Waits for a listener until then, without blocking.
  void start_connect(const Address& address, const fabric::Offer& offer, const fabric::Deadline& until);
  /// Blocks until the peer has accepted.
  std::unique_ptr<fabric::Connection> connect(const Address& address, const fabric::Offer& offer,
                                              const fabric::Deadline& deadline);
  /// Calls `join(connection)` for each new connection. A connector that `join` finds to be no peer (EPROTO) is
  /// dropped; any other failure is thrown, and the rest is left for the next call.
  template <class Join>
  void join_new(const fabric::Offer& offer, Join&& join) {
    rest(false);
    for (std::unique_ptr<fabric::Connection> connection; (connection = accepted(offer)) != nullptr;) {
      try {
        join(std::move(connection));
      } catch (const Error& error) {
        if (error.code().value() != EPROTO) throw;
        log_dropped(error);
        break;  // there may be many, and the caller has a deadline
      }
    }
    while (auto connection = finished()) join(std::move(connection));
  }
  /// Until the next call of `join_new`, the port is not watched: it cannot be served now.
  void rest(bool yes);

  [[nodiscard]] bool set_up() const noexcept { return fabric_ != nullptr; }
  /// Whether a connection may still be made: there is a listener or an attempt.
  [[nodiscard]] bool open() const noexcept { return listener_ != nullptr || !attempts_.empty(); }
  [[nodiscard]] bool listens() const noexcept { return listener_ != nullptr; }
  [[nodiscard]] const Address& local() const noexcept;

 private:
  std::unique_ptr<fabric::Connection> accepted(const fabric::Offer& offer);
  std::unique_ptr<fabric::Connection> finished();
  static void log_dropped(const Error& error);

  WaitSet& wait_set_;
  fabric::Fabric* fabric_ = nullptr;
  std::unique_ptr<fabric::Listener> listener_;
  std::vector<std::unique_ptr<fabric::Connecting>> attempts_;
  bool rests_ = false;
};

}  // namespace wherry::message
