// SPDX-License-Identifier: Apache-2.0
// A peer that sends many long messages is given a lane: its section then is as large as a stream's ring, which comes
// round to a line only after the reader's cache has lost it. A few peers at a time have one, as long as they use it.
#pragma once

#include <cstdint>
#include <vector>

#include <wherry/mailbox.hpp>

#include "link.hpp"

namespace wherry::mpi {

class Lanes {
 public:
  explicit Lanes(Mailbox& mailbox) : mailbox_(mailbox) {}

  /// The peer has announced a message of `bytes` bytes.
  void consider(Link& link, std::uint64_t bytes);
  void close(Link& link) noexcept;
  void close_idle() noexcept;

 private:
  Mailbox& mailbox_;
  std::vector<Link*> links_;
};

}  // namespace wherry::mpi
