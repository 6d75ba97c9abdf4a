// SPDX-License-Identifier: Apache-2.0
// Fault injection for any fabric: "faulty+NAME" is the fabric NAME with faults by a seeded plan (WHERRY_FAULTS). All
// faults are allowed by the contract of fabric.hpp. May include: base, arch, layout.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "fabric/fabric.hpp"
#include "fabric/faulty/plan.hpp"

namespace wherry::fabric::faulty {

class FaultyFabric final : public Fabric {
 public:
  /// Without a plan, WHERRY_FAULTS is read at each listen and connect.
  explicit FaultyFabric(Fabric& inner, std::optional<FaultPlan> plan = {});

  [[nodiscard]] std::string_view name() const override { return name_; }
  std::unique_ptr<Listener> listen(const Address& address) override;
  std::unique_ptr<Connecting> connect(const Address& address, const Offer& offer) override;
  [[nodiscard]] bool keeps_segments() const override;
  std::shared_ptr<memory::SharedMemory> share(std::size_t bytes) override;

 private:
  [[nodiscard]] bool hides_map() const;
  /// Returns the plan of the next listener or connector. Each has its own sequence of faults.
  FaultPlan next_plan();

  Fabric& inner_;
  const std::optional<FaultPlan> plan_;
  const std::string name_;
  std::atomic<std::uint64_t> made_{0};
};

}  // namespace wherry::fabric::faulty
