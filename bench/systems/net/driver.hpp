// SPDX-License-Identifier: Apache-2.0
// `wherry bench net --connect HOST`: runs rank 1 of each sample here, and rank 0 on the host that listens.
#pragma once

#include <cstdint>
#include <string>

#include "bench/harness/sample_memory.hpp"
#include "bench/systems/net/control_connection.hpp"
#include "bench/systems/net/hosts.hpp"

namespace wherry::bench::net {

class Driver final : public Hosts {
 public:
  /// Connects to `wherry bench net --listen`. Throws std::runtime_error, which says what to do.
  Driver(const std::string& host, std::uint16_t port);

  [[nodiscard]] std::string description() const override;
  Outcome run(LinkSystem& system, const Sample& sample) override;
  std::string enter(std::uint32_t rank) override;

 private:
  /// Ends the sample on both hosts, and takes over what rank 0 measured. Throws why rank 0 failed.
  void finish(SampleMemory& shared, const Sample& sample) const;

  ControlConnection control_;
  std::uint64_t number_ = 0;  ///< of the sample
};

}  // namespace wherry::bench::net
