// SPDX-License-Identifier: Apache-2.0
// One port on two fabrics.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include <wherry/address.hpp>

#include "base/unique_fd.hpp"
#include "fabric/fabric.hpp"
#include "fabric/rendezvous.hpp"

namespace wherry::fabric::hosts {

class HostsListener final : public Listener {
 public:
  /// Listens at `wanted`, whose node is the own one, on both fabrics. A free port is one that both have. Throws what
  /// they throw; Error(EMFILE).
  HostsListener(Fabric& here, Fabric& elsewhere, const Address& wanted);

  /// From both fabrics in turn: neither waits for long because the other has many connectors.
  std::unique_ptr<Connection> try_accept(const Offer& offer) override;
  [[nodiscard]] int descriptor() const override { return either_.get(); }
  [[nodiscard]] const Address& local() const override { return local_; }

 private:
  void listen(Fabric& here, Fabric& elsewhere, const Address& wanted);

  std::array<std::unique_ptr<Listener>, 2> listeners_;
  std::size_t next_ = 0;  ///< which of them is asked first
  Address local_;
  UniqueFd either_;  ///< an epoll descriptor of both
};

}  // namespace wherry::fabric::hosts
