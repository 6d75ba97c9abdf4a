// SPDX-License-Identifier: Apache-2.0
#include "bench/systems/net/systems.hpp"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/two_hosts.hpp"

namespace wherry::bench::net {
namespace {

constexpr std::array<std::string_view, 5> kNames{"wherry", "tcp", "zmq-tcp", "nng-tcp", "ofi-ring"};

/// Made by the first sample, in the process that forks the others.
TwoHosts& two_hosts() {
  static TwoHosts hosts;
  return hosts;
}

/// Another system, whose receiver is on one host and whose sender is on the other.
class NetworkSystem final : public LinkSystem {
 public:
  explicit NetworkSystem(LinkSystem& inner) : inner_(inner) {}

  [[nodiscard]] std::string name() const override { return "net-" + inner_.name(); }
  [[nodiscard]] std::string version() const override { return inner_.version(); }
  [[nodiscard]] std::string settings() const override {
    return "between two network namespaces that a veth pair joins: " + inner_.settings();
  }
  [[nodiscard]] bool can(const Sample& sample) const override { return sample.senders == 1 && inner_.can(sample); }
  [[nodiscard]] std::string question() const override { return "net"; }
  [[nodiscard]] bool serves_idle() const override { return inner_.serves_idle(); }
  [[nodiscard]] bool pinned() const override { return inner_.pinned(); }

  Outcome run(const Sample& sample) override {
    (void)two_hosts();
    return LinkSystem::run(sample);
  }
  std::unique_ptr<Link> open(const Place& place) override {
    two_hosts().enter(place.rank);
    return inner_.open(Place{place.sample, place.rank, place.exchange, place.name, TwoHosts::address(0)});
  }

 private:
  LinkSystem& inner_;
};

}  // namespace

void add_systems(Registry& registry) {
  Systems added;
  for (const auto& system : registry.systems) {
    for (const std::string_view name : kNames) {
      auto* const inner = dynamic_cast<LinkSystem*>(system.get());
      if (inner != nullptr && system->name() == name) added.push_back(std::make_unique<NetworkSystem>(*inner));
    }
  }
  for (auto& system : added) registry.systems.push_back(std::move(system));
}

}  // namespace wherry::bench::net
