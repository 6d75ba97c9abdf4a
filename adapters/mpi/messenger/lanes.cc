// SPDX-License-Identifier: Apache-2.0
#include "lanes.hpp"

#include "arch/ticks.hpp"

namespace wherry::mpi {
namespace {

// Lanes per endpoint, and bytes that a peer must announce before it gets one. To fault in a lane's pages takes about as
// long as copying this many bytes.
constexpr std::size_t kMostLanes = 4;
constexpr std::uint64_t kLaneAfter = 16 << 20;
constexpr std::uint64_t kLaneIdle = 2'000'000'000;  // ticks: about a second

}  // namespace

void Lanes::consider(Link& link, std::uint64_t bytes) {
  const std::uint64_t now = arch::ticks();
  if (now - link.last_streamed > kLaneIdle) link.announced = 0;
  link.last_streamed = now;
  link.announced += bytes;
  if (link.has_lane || link.announced < kLaneAfter) return;
  link.announced = 0;
  if (links_.size() >= kMostLanes) return;
  links_.push_back(&link);
  link.has_lane = true;
  mailbox_.widen(link.peer, true);
}

void Lanes::close_idle() noexcept {
  if (links_.empty()) return;
  const std::uint64_t now = arch::ticks();
  for (std::size_t i = links_.size(); i > 0; --i) {
    if (now - links_[i - 1]->last_streamed > kLaneIdle) close(*links_[i - 1]);
  }
}

void Lanes::close(Link& link) noexcept {
  if (!link.has_lane) return;
  link.has_lane = false;
  std::erase(links_, &link);
  mailbox_.widen(link.peer, false);
}

}  // namespace wherry::mpi
