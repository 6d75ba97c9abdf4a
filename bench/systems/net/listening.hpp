// SPDX-License-Identifier: Apache-2.0
// `wherry bench net --listen`: runs rank 0 of the samples of a program on another host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/harness/registry.hpp"
#include "bench/systems/net/control_connection.hpp"
#include "bench/systems/net/hosts.hpp"

namespace wherry::bench::net {

class ListeningHost final : public Hosts {
 public:
  /// Listens at that TCP port, on all of this host's IPv4 addresses. Throws std::runtime_error, which says what to do.
  explicit ListeningHost(std::uint16_t port);

  /// Serves programs that connect, one after another, until the process is interrupted. `registry`: systems that have
  /// this object as their hosts. Prints to standard error who connects, and what is measured.
  [[noreturn]] void serve(const Registry& registry);

  [[nodiscard]] std::string description() const override { return "as the program that connects says"; }
  /// Rank 0 only: the program that connects takes the samples. Throws std::logic_error.
  Outcome run(LinkSystem& system, const Sample& sample) override;
  std::string enter(std::uint32_t rank) override;

 private:
  /// Returns by an exception when the driver has ended its run.
  [[noreturn]] void serve_driver(const Registry& registry) const;

  ControlListener listener_;
  std::uint16_t port_;
  std::optional<ControlConnection> driver_;
};

}  // namespace wherry::bench::net
