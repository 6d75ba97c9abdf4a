// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "bench/harness/sample_memory.hpp"
#include "bench/systems/net/control_connection.hpp"

namespace wherry::bench::net {

/// The rank of a sample that runs on the other host. Used by the process of the rank that runs on this one.
class OtherRank final : public RemoteRank {
 public:
  /// `sample`: its number. `control` must outlive this object.
  OtherRank(const ControlConnection& control, std::uint64_t sample, std::uint32_t rank)
      : control_(control), sample_(sample), rank_(rank) {}

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  void meet(const Report& own, Report& other) override;
  void post(std::string_view bytes) override;
  std::string read() override;

 private:
  /// The next frame of this sample with that member; keeps notes that come before it.
  [[nodiscard]] nlohmann::json await(const char* member);

  const ControlConnection& control_;
  std::uint64_t sample_;
  std::uint32_t rank_;
  std::uint64_t met_ = 0;
  std::optional<std::string> note_;
};

}  // namespace wherry::bench::net
