// SPDX-License-Identifier: Apache-2.0
// Which TCP port stands for a (job, node, port). No daemon knows: a hash selects the first candidate, and a listener
// takes the first of the candidates that is free. A connector asks them in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/port_range.hpp"
#include "base/unique_fd.hpp"

namespace wherry::fabric::ofi {

/// The same on all hosts. Jobs of the same number are told apart by their keys.
std::uint64_t job_number(std::string_view job);

/// All ports of a range, each once, beginning at one that a hash of the address selects.
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

/// Makes (job, node, port) this process's on its host, until it is closed: a name in the abstract namespace of Unix
/// sockets, which the kernel frees however the process ends. TCP ports cannot tell it: any of the range may be held.
/// Invalid, with errno: EADDRINUSE, another process of this user has it.
UniqueFd hold_address(std::string_view job, std::uint16_t node, std::uint16_t port);

/// A non-blocking socket that listens on the first free port of the order: for IPv6 and IPv4, or IPv4 alone where the
/// kernel has no IPv6. Throws Error: EADDRINUSE (none is free), EMFILE.
UniqueFd listen_on_first_free(const PortOrder& order);

}  // namespace wherry::fabric::ofi
