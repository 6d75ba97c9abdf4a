// SPDX-License-Identifier: Apache-2.0
// Maps (job, node, port) to a TCP port without a daemon. A hash selects the first candidate, and a listener takes the
// first candidate that is free. A connector asks the candidates in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/port_range.hpp"
#include "base/unique_fd.hpp"

namespace wherry::fabric::ofi {

/// Returns a hash of the job's name, equal on all hosts. Jobs with the same hash are distinguished by their keys.
std::uint64_t job_number(std::string_view job);

/// The order of candidates: all ports of a range, each once, beginning at one that a hash of the address selects.
class PortOrder {
 public:
  PortOrder(PortRange range, std::uint64_t job, std::uint16_t node, std::uint16_t port);

  [[nodiscard]] std::size_t size() const { return range_.size(); }
  [[nodiscard]] std::uint16_t operator[](std::size_t index) const {
    return static_cast<std::uint16_t>(range_.first + (start_ + index) % range_.size());
  }

 private:
  PortRange range_;
  std::size_t start_;
};

/// Reserves (job, node, port) for this process on its host, until the descriptor is closed. The reservation is a name
/// in the abstract namespace of Unix sockets, which the kernel frees however the process ends. A TCP port cannot be the
/// reservation, because any candidate may be in use. Invalid, with errno: EADDRINUSE if another process of this user
/// has it.
UniqueFd hold_address(std::string_view job, std::uint16_t node, std::uint16_t port);

/// Returns a non-blocking socket that listens on the first free port of the order, for IPv6 and IPv4; only for IPv4 if
/// the kernel has no IPv6. Throws Error: EADDRINUSE (none is free), EMFILE.
UniqueFd listen_on_first_free(const PortOrder& order);

}  // namespace wherry::fabric::ofi
