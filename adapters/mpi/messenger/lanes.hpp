// SPDX-License-Identifier: Apache-2.0
// Lanes: larger sections for the few peers that are sending many long messages. A lane is as large as a stream's ring:
// it wraps around to a cache line only after that line has left the reader's cache. A lane is closed when its peer
// stops using it.
#pragma once

#include <cstdint>
#include <vector>

#include <wherry/mailbox.hpp>

#include "link.hpp"

namespace wherry::mpi {

class Lanes {
 public:
  explicit Lanes(Mailbox& mailbox) : mailbox_(mailbox) {}

  /// Notes that the peer has announced a message of `bytes` bytes, and may give it a lane.
  void consider(Link& link, std::uint64_t bytes);
  void close(Link& link) noexcept;
  void close_idle() noexcept;

 private:
  Mailbox& mailbox_;
  std::vector<Link*> links_;
};

}  // namespace wherry::mpi
