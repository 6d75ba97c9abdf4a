// SPDX-License-Identifier: Apache-2.0
// Divides a budget among peers: arithmetic only. All sizes are in lines of 64 bytes.
//
// May include: nothing of ours.
#pragma once

#include <cstdint>

namespace wherry::mailbox {

using Lines = std::uint32_t;

/// The inputs of the division, and each peer's share.
struct Division {
  Lines budget = 0;
  Lines header = 0;
  std::uint32_t peers = 0;
  Lines quiet_header = 0;
  std::uint32_t quiet = 0;    ///< peers that have not sent yet
  std::uint64_t weights = 0;  ///< the sum over the peers

  /// The budget minus all headers.
  [[nodiscard]] Lines payload() const {
    const std::uint64_t headers = std::uint64_t{header} * (peers - quiet) + std::uint64_t{quiet_header} * quiet;
    return headers < budget ? static_cast<Lines>(budget - headers) : 0;
  }
  /// Size of the section of a peer with this weight: the header and its part of the payload. The sum over all peers is
  /// at most the budget, or the sum of the headers if that is larger.
  [[nodiscard]] Lines share(std::uint32_t weight) const {
    if (weight == 0 || weights == 0) return header;
    // The product is below 2^32 * 2^32.
    return header + static_cast<Lines>(std::uint64_t{payload()} * weight / weights);
  }
};

}  // namespace wherry::mailbox
