// SPDX-License-Identifier: Apache-2.0
// A listener with the same port on two fabrics.
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
  /// Listens at `wanted`, an address of this node, on both fabrics. Without a port it chooses one that is free on both.
  /// Throws the errors of the fabrics; Error(EMFILE).
  HostsListener(Fabric& here, Fabric& elsewhere, const Address& wanted);

  /// Accepts from both fabrics in turn, so that many connectors on one do not delay those on the other.
  std::unique_ptr<Connection> try_accept(const Offer& offer) override;
  [[nodiscard]] int descriptor() const override { return either_.get(); }
  [[nodiscard]] const Address& local() const override { return local_; }

 private:
  void listen(Fabric& here, Fabric& elsewhere, const Address& wanted);

  std::array<std::unique_ptr<Listener>, 2> listeners_;
  std::size_t next_ = 0;  ///< the listener that the next try_accept asks first
  Address local_;
  UniqueFd either_;  ///< an epoll descriptor with both listeners
};

}  // namespace wherry::fabric::hosts
