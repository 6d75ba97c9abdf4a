// SPDX-License-Identifier: Apache-2.0
#include "fabric/hosts/hosts.hpp"

#include <cerrno>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "base/own_host.hpp"
#include "fabric/check.hpp"
#include "fabric/hosts/listener.hpp"
#include "fabric/registry.hpp"

namespace wherry::fabric::hosts {
namespace {

/// The listener if all nodes are on this host: it listens on one fabric, and its address does not name that fabric.
class LocalListener final : public Listener {
 public:
  LocalListener(std::unique_ptr<Listener> inner, std::string fabric)
      : inner_(std::move(inner)), local_(inner_->local()) {
    local_.fabric = std::move(fabric);
  }

  std::unique_ptr<Connection> try_accept(const Offer& offer) override { return inner_->try_accept(offer); }
  [[nodiscard]] int descriptor() const override { return inner_->descriptor(); }
  [[nodiscard]] const Address& local() const override { return local_; }

 private:
  const std::unique_ptr<Listener> inner_;
  Address local_;
};

}  // namespace

std::unique_ptr<Listener> HostsFabric::listen(const Address& address) {
  const auto place = own_place();
  Address wanted = address;
  wanted.node = node_to_bind(address);
  if (!place->is_alone()) return std::make_unique<HostsListener>(here_(), elsewhere_(), wanted);
  Fabric& here = here_();
  wanted.fabric = here.name();
  return std::make_unique<LocalListener>(here.listen(wanted), address.fabric);
}

std::unique_ptr<Connecting> HostsFabric::connect(const Address& address, const Offer& offer) {
  check_target(address);
  const auto place = own_place();
  if (place->hosts.host_of(*address.node) == nullptr) {
    throw Error(EHOSTUNREACH, "connect to", address.to_string(),
                place->file + " (WHERRY_HOSTS) has no line for node " + std::to_string(*address.node) +
                    "; add it, on all hosts");
  }
  Fabric& fabric = place->is_here(*address.node) ? here_() : elsewhere_();
  Address exact = address;
  exact.fabric = fabric.name();
  return fabric.connect(exact, offer);
}

std::shared_ptr<memory::SharedMemory> HostsFabric::share(std::size_t /*bytes*/) {
  throw Error(ENOTSUP, "share memory with", "the hosts of WHERRY_HOSTS",
              "peers on other hosts cannot map it; use wherry+shm:// for processes of this machine, or a stream");
}

}  // namespace wherry::fabric::hosts

namespace wherry::fabric {

void register_hosts(Registry& registry) {
  registry.add(std::make_unique<hosts::HostsFabric>([&registry]() -> Fabric& { return registry.find("shm"); },
                                                    [&registry]() -> Fabric& { return registry.find("ofi"); }));
}

}  // namespace wherry::fabric
