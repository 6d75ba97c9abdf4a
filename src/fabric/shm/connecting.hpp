// SPDX-License-Identifier: Apache-2.0
// The connecting end of a rendezvous.
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.hpp"
#include "fabric/rendezvous.hpp"
#include "fabric/shm/connection.hpp"

namespace wherry::fabric::shm {

class ShmConnecting final : public Connecting {
 public:
  /// Throws Error: ECONNREFUSED (QueueFull, too), EACCES, EMFILE, ENOMEM.
  ShmConnecting(const Address& address, const Offer& offer);

  std::unique_ptr<Connection> try_finish() override;
  [[nodiscard]] int descriptor() const override { return socket_.get(); }

 private:
  [[nodiscard]] UniqueFd reach_listener();
  void require_sent(int error) const;
  [[noreturn]] void fail(int error, const std::string& advice) const {
    throw Error(error, "connect to", address_.to_string(), advice);
  }

  Address address_;
  Peer peer_;
  OwnSide own_;
  UniqueFd companion_;
  UniqueFd socket_;
};

}  // namespace wherry::fabric::shm
