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

/// A connection to the listener on that address, on which nothing has been said; stores the listener's credentials in
/// `peer`. A listener drops a connector that leaves without having said anything, and its program does not see it.
/// Never blocks. Throws Error: ECONNREFUSED (QueueFull, too), EACCES, EMFILE.
UniqueFd reach_listener(const Address& address, Peer& peer);

class ShmConnecting final : public Connecting {
 public:
  /// Throws Error: ECONNREFUSED (QueueFull, too), EACCES, EMFILE, ENOMEM.
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
  UniqueFd companion_;  ///< first: a listener that cannot be reached now costs no memory of `own_`
  OwnSide own_;
  UniqueFd socket_;
};

}  // namespace wherry::fabric::shm
