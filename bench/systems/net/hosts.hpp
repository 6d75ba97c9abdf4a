// SPDX-License-Identifier: Apache-2.0
// The two hosts of `wherry bench net`: rank 0, which receives, is on one, and rank 1 on the other.
#pragma once

#include <cstdint>
#include <string>

#include "bench/harness/system.hpp"

namespace wherry::bench::net {

/// The question of all systems that are measured between hosts.
inline constexpr const char* kQuestion = "net";

/// Takes samples of a system whose ranks are on two hosts.
class Hosts {
 public:
  Hosts() = default;
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  virtual ~Hosts() = default;

  /// Where messages go, for the settings of a system: "between ...".
  [[nodiscard]] virtual std::string description() const = 0;
  /// Throws std::exception, as System::run does.
  virtual Outcome run(LinkSystem& system, const Sample& sample) = 0;
  /// Called in the process of a rank before it opens its link. Returns the address of rank 0's host.
  virtual std::string enter(std::uint32_t rank) = 0;
};

}  // namespace wherry::bench::net
