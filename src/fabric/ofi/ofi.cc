// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include <wherry/error.hpp>

#include "base/config.hpp"
#include "base/hosts.hpp"
#include "fabric/check.hpp"
#include "fabric/modules.hpp"
#include "fabric/ofi/meeting_point.hpp"

namespace wherry::fabric::ofi {
namespace {

/// Returns the host of a node from WHERRY_HOSTS. If that is not set, only this process's node has a host: this one.
std::string host_of(const Address& address) {
  const std::string file = config::word(config::Key::hosts);
  if (file.empty()) {
    if (*address.node == own_node()) return "127.0.0.1";
    throw Error(ECONNREFUSED, "connect to", address.to_string(),
                "WHERRY_HOSTS is not set: make a file with the host of each node, one a line from node 0 on");
  }
  const Hosts hosts = Hosts::read(file);
  const std::string* host = hosts.host_of(*address.node);
  if (host == nullptr) {
    throw Error(ECONNREFUSED, "connect to", address.to_string(),
                file + " (WHERRY_HOSTS) names no host for node " + std::to_string(*address.node));
  }
  return *host;
}

class OfiFabric final : public Fabric {
 public:
  [[nodiscard]] std::string_view name() const override { return "ofi"; }

  std::unique_ptr<Listener> listen(const Address& address) override {
    return std::make_unique<OfiListener>(Settings::from_environment(), address);
  }

  std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) override {
    check_target(address);
    check_offer("connect", address, offer);
    return std::make_unique<OfiConnecting>(Settings::from_environment(), host_of(address), address, offer);
  }
};

}  // namespace
}  // namespace wherry::fabric::ofi

wherry::fabric::Fabric* wherry_fabric_ofi() { return new wherry::fabric::ofi::OfiFabric; }
