// SPDX-License-Identifier: Apache-2.0
// Makes the connections of a publisher or a subscriber: one listening port, and any number of attempts to connect.
//
// May include: base, fabric.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <wherry/address.hpp>

#include "fabric/fabric.hpp"
#include "message/wait_set.hpp"

namespace wherry::message {

/// All calls that can fail throw Error.
class ConnectionSetup {
 public:
  /// Adds to `wait_set` every descriptor whose readiness calls for `join_new`.
  explicit ConnectionSetup(WaitSet& wait_set) : wait_set_(wait_set) {}

  /// Returns the fabric of an address. All addresses of one publisher or subscriber must have the same.
  fabric::Fabric& fabric_of(const Address& address);
  void listen(const Address& address);
  /// Starts an attempt, which waits for a listener until `until`. Does not block.
  void start_connect(const Address& address, const fabric::Offer& offer, const fabric::Deadline& until);
  /// Connects, and blocks until the peer has accepted.
  std::unique_ptr<fabric::Connection> connect(const Address& address, const fabric::Offer& offer,
                                              const fabric::Deadline& deadline);
  /// Calls `join(connection)` for each new connection. An accepted connection that `join` rejects with EPROTO is
  /// dropped and logged; the others wait for the next call. Any other failure is thrown, and the rest is left for the
  /// next call.
  template <class Join>
  void join_new(const fabric::Offer& offer, Join&& join) {
    set_port_paused(false);
    for (std::unique_ptr<fabric::Connection> connection; (connection = accepted(offer)) != nullptr;) {
      try {
        join(std::move(connection));
      } catch (const Error& error) {
        if (error.code().value() != EPROTO) throw;
        log_dropped(error);
        break;  // there may be many, and the caller may have a deadline
      }
    }
    while (auto connection = finished()) join(std::move(connection));
  }
  /// Stops or resumes watching the port. Used while the port cannot be served; the next `join_new` resumes.
  void set_port_paused(bool paused);

  [[nodiscard]] bool set_up() const noexcept { return fabric_ != nullptr; }
  /// Whether a connection may still come about: there is a listener or an attempt.
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
  bool port_is_paused_ = false;
};

}  // namespace wherry::message
