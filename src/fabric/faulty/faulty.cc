// SPDX-License-Identifier: Apache-2.0
#include "fabric/faulty/faulty.hpp"

#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include "base/config.hpp"
#include "fabric/faulty/connection.hpp"
#include "fabric/registry.hpp"

namespace wherry::fabric::faulty {
namespace {

constexpr std::uint64_t kSeedsApart = 1'000'003;  // a connection also uses the few seeds after its own

class FaultyListener final : public Listener {
 public:
  FaultyListener(std::unique_ptr<Listener> inner, std::string name, const FaultPlan& plan)
      : inner_(std::move(inner)), plan_(plan), local_(inner_->local()) {
    local_.fabric = std::move(name);
  }

  std::unique_ptr<Connection> try_accept(const Offer& offer) override {
    auto connection = inner_->try_accept(offer);
    if (connection == nullptr) return nullptr;
    FaultPlan plan = plan_;
    plan.seed += kSeedsApart * kSeedsApart * accepted_++;
    return std::make_unique<FaultyConnection>(std::move(connection), plan);
  }

  [[nodiscard]] int descriptor() const override { return inner_->descriptor(); }
  /// Has the name of this fabric, so that a connector that uses the address has faults on its own side too.
  [[nodiscard]] const Address& local() const override { return local_; }

 private:
  std::unique_ptr<Listener> inner_;
  const FaultPlan plan_;
  Address local_;
  std::atomic<std::uint64_t> accepted_{0};
};

class FaultyConnecting final : public Connecting {
 public:
  FaultyConnecting(std::unique_ptr<Connecting> inner, const FaultPlan& plan) : inner_(std::move(inner)), plan_(plan) {}

  std::unique_ptr<Connection> try_finish() override {
    auto connection = inner_->try_finish();
    if (connection == nullptr) return nullptr;
    return std::make_unique<FaultyConnection>(std::move(connection), plan_);
  }

  [[nodiscard]] int descriptor() const override { return inner_->descriptor(); }
  [[nodiscard]] std::span<std::byte> segment() const override {
    return plan_.hide_map != 0 ? std::span<std::byte>{} : inner_->segment();
  }
  [[nodiscard]] bool waits_for_listener() const override { return inner_->waits_for_listener(); }
  [[nodiscard]] std::string obstacle() const override { return inner_->obstacle(); }

 private:
  std::unique_ptr<Connecting> inner_;
  const FaultPlan plan_;
};

}  // namespace

FaultyFabric::FaultyFabric(Fabric& inner, std::optional<FaultPlan> plan)
    : inner_(inner), plan_(plan), name_("faulty+" + std::string(inner.name())) {}

FaultPlan FaultyFabric::next_plan() {
  FaultPlan plan = plan_ ? *plan_ : FaultPlan::parse(config::text(config::Key::faults));
  plan.seed += kSeedsApart * made_.fetch_add(1);
  return plan;
}

std::unique_ptr<Listener> FaultyFabric::listen(const Address& address) {
  const FaultPlan plan = next_plan();
  return std::make_unique<FaultyListener>(inner_.listen(address), name_, plan);
}

std::unique_ptr<Connecting> FaultyFabric::connect(const Address& address, const Offer& offer) {
  const FaultPlan plan = next_plan();
  if (Dice(plan.seed).percent(plan.refuse)) {
    throw Error(ECONNREFUSED, "connect", address.to_string(), "the fault plan refuses this one; connect again");
  }
  return std::make_unique<FaultyConnecting>(inner_.connect(address, offer), plan);
}

bool FaultyFabric::keeps_segments() const { return !hides_map() && inner_.keeps_segments(); }

bool FaultyFabric::hides_map() const {
  const FaultPlan plan = plan_ ? *plan_ : FaultPlan::parse(config::text(config::Key::faults));
  return plan.hide_map != 0;
}

std::shared_ptr<memory::SharedMemory> FaultyFabric::share(std::size_t bytes) {
  return hides_map() ? Fabric::share(bytes) : inner_.share(bytes);
}

}  // namespace wherry::fabric::faulty

namespace wherry::fabric {

void register_faulty(Registry& registry) {
  registry.add_decorator("faulty", [](Fabric& inner) { return std::make_unique<faulty::FaultyFabric>(inner); });
}

}  // namespace wherry::fabric
