// SPDX-License-Identifier: Apache-2.0
// The connecting end of a rendezvous.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.hpp"
#include "fabric/rendezvous.hpp"
#include "fabric/shm/connection.hpp"

namespace wherry::fabric::shm {

/// Connects a socket to the listener at that address, and stores the listener's credentials in `peer`. Sends nothing:
/// if the connector closes the socket without a request, the listener drops it, and its program does not notice. Never
/// blocks. Throws Error: ECONNREFUSED (including QueueFull), EACCES, EMFILE.
UniqueFd reach_listener(const Address& address, Peer& peer);

/// An attempt to connect over shm: two sockets to the listener, the request and its companion.
class ShmConnecting final : public Connecting {
 public:
  /// Throws Error: ECONNREFUSED (including QueueFull), EACCES, EMFILE, ENOMEM.
  ShmConnecting(const Address& address, const Offer& offer);

  std::unique_ptr<Connection> try_finish() override;
  [[nodiscard]] int descriptor() const override { return socket_.get(); }
  [[nodiscard]] std::span<std::byte> segment() const override { return own_.memory.segment(); }

 private:
  UniqueFd reach_companion();
  void require_sent(int error) const;
  [[noreturn]] void fail(int error, const std::string& advice) const {
    throw Error(error, "connect to", address_.to_string(), advice);
  }

  Address address_;
  Peer peer_;
  UniqueFd companion_;  ///< before `own_`: if the listener cannot be reached, no memory is allocated
  OwnSide own_;
  UniqueFd socket_;
};

}  // namespace wherry::fabric::shm
