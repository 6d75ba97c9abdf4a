// SPDX-License-Identifier: Apache-2.0
// The default fabric if WHERRY_HOSTS is set. It moves no data itself: it reaches nodes of this host over one fabric
// (shm), and nodes of other hosts over another (ofi, loaded when first needed). base/own_host.hpp maps nodes to hosts.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include <wherry/address.hpp>

#include "fabric/fabric.hpp"

namespace wherry::fabric::hosts {

inline constexpr std::string_view kName = "hosts";

class HostsFabric final : public Fabric {
 public:
  using Find = std::function<Fabric&()>;
  /// The functions are called when a fabric is needed; `elsewhere` never if all nodes are on this host. listen and
  /// connect pass on the Errors that they throw.
  HostsFabric(Find here, Find elsewhere) : here_(std::move(here)), elsewhere_(std::move(elsewhere)) {}

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] std::string_view name_of(const Connection& connection) const override {
    return connection.peer().address.fabric;
  }
  /// Listens on both fabrics, on the same port; only on `here` if all nodes are on this host. Throws the errors of the
  /// fabrics and of own_place.
  std::unique_ptr<Listener> listen(const Address& address) override;
  /// Throws the errors of the node's fabric and of own_place, and Error(EHOSTUNREACH) for a node without a host.
  std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) override;
  /// Throws Error(ENOTSUP): peers on other hosts cannot map it.
  std::shared_ptr<memory::SharedMemory> share(std::size_t bytes) override;

 private:
  const Find here_;
  const Find elsewhere_;
};

}  // namespace wherry::fabric::hosts
