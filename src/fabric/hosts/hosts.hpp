// SPDX-License-Identifier: Apache-2.0
// The fabric of addresses that name none where WHERRY_HOSTS is set: it moves nothing itself. Nodes of this host are
// reached over one fabric (shm), nodes of other hosts over another (ofi, loaded when it is first needed). Which node is
// where: base/own_host.hpp.
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
  /// Asked when they are needed: `elsewhere` never if all nodes are on this host. May throw Error, which listening and
  /// connecting pass on.
  HostsFabric(Find here, Find elsewhere) : here_(std::move(here)), elsewhere_(std::move(elsewhere)) {}

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] std::string_view name_of(const Connection& connection) const override {
    return connection.peer().address.fabric;
  }
  /// Listens on both fabrics, on one port. Throws what they throw, and what own_place throws.
  std::unique_ptr<Listener> listen(const Address& address) override;
  /// Throws what the node's fabric throws, what own_place throws, and Error(EHOSTUNREACH) for a node without a host.
  std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) override;
  /// Throws Error(ENOTSUP): peers on other hosts cannot map it.
  std::shared_ptr<memory::SharedMemory> share(std::size_t bytes) override;

 private:
  const Find here_;
  const Find elsewhere_;
};

}  // namespace wherry::fabric::hosts
