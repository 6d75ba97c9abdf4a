// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include "fabric/fabric.hpp"

namespace wherry::fabric {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// There is nothing to wait on: between two attempts this much, and each time twice as much.
constexpr Clock::duration kFirstPause = milliseconds(1);
constexpr Clock::duration kLongestPause = milliseconds(20);

}  // namespace

std::unique_ptr<Connecting> connect_by(Fabric& fabric, const Address& address, const Offer& offer, Deadline deadline) {
  for (Clock::duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    try {
      return fabric.connect(address, offer);
    } catch (const QueueFull&) {
      if (deadline && Clock::now() >= *deadline) throw;
    }
    const auto next = Clock::now() + pause;
    std::this_thread::sleep_until(deadline ? std::min(next, *deadline) : next);
  }
}

}  // namespace wherry::fabric
