// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/net/systems.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/two_hosts.hpp"
#include "bench/systems/net/hosts.hpp"

namespace wherry::bench::net {
namespace {

constexpr std::array<std::string_view, 5> kNames{"wherry", "tcp", "zmq-tcp", "nng-tcp", "ofi-ring"};

/// Two network namespaces of this machine.
class Namespaces final : public Hosts {
 public:
  [[nodiscard]] std::string description() const override {
    return "between two network namespaces that a veth pair joins";
  }
  Outcome run(LinkSystem& system, const Sample& sample) override {
    if (!hosts_) hosts_.emplace();
    return system.LinkSystem::run(sample);
  }
  std::string enter(std::uint32_t rank) override {
    hosts_->enter(rank);
    return TwoHosts::address(0);
  }

 private:
  std::optional<TwoHosts> hosts_;  ///< made by the first sample, in the process that forks the others
};

/// Another system, whose receiver is on one host and whose sender is on the other.
class NetworkSystem final : public LinkSystem {
 public:
  NetworkSystem(LinkSystem& inner, std::shared_ptr<Hosts> hosts) : inner_(inner), hosts_(std::move(hosts)) {}

  [[nodiscard]] std::string name() const override { return "net-" + inner_.name(); }
  [[nodiscard]] std::string version() const override { return inner_.version(); }
  [[nodiscard]] std::string settings() const override { return hosts_->description() + ": " + inner_.settings(); }
  [[nodiscard]] bool can(const Sample& sample) const override { return sample.senders == 1 && inner_.can(sample); }
  [[nodiscard]] std::string question() const override { return kQuestion; }
  [[nodiscard]] bool serves_idle() const override { return inner_.serves_idle(); }
  [[nodiscard]] bool pinned() const override { return inner_.pinned(); }

  Outcome run(const Sample& sample) override { return hosts_->run(*this, sample); }
  std::unique_ptr<Link> open(const Place& place) override {
    const std::string receiver = hosts_->enter(place.rank);
    return inner_.open(Place{place.sample, place.rank, place.exchange, place.name, receiver});
  }

 private:
  LinkSystem& inner_;
  std::shared_ptr<Hosts> hosts_;
};

}  // namespace

std::shared_ptr<Hosts> two_namespaces() { return std::make_shared<Namespaces>(); }

void add_systems(Registry& registry, const std::shared_ptr<Hosts>& hosts) {
  Systems added;
  for (const auto& system : registry.systems) {
    for (const std::string_view name : kNames) {
      auto* const inner = dynamic_cast<LinkSystem*>(system.get());
      if (inner != nullptr && system->name() == name) added.push_back(std::make_unique<NetworkSystem>(*inner, hosts));
    }
  }
  for (auto& system : added) registry.systems.push_back(std::move(system));
}

}  // namespace wherry::bench::net
