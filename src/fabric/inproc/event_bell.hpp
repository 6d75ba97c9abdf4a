// SPDX-License-Identifier: Apache-2.0
// A bell that one thread rings and another hears, by sleeping on it or in its own event loop. May include: base.
#pragma once

#include "base/unique_fd.hpp"
#include "fabric/fabric.hpp"

namespace wherry::fabric::inproc {

/// All calls from any thread; none blocks but `await`.
class EventBell {
 public:
  /// Throws Error(EMFILE, ENFILE, ENOMEM).
  EventBell();

  void ring() noexcept;
  /// Returns whether it was rung.
  bool silence() noexcept;
  /// Sleeps until it is rung, and leaves it so. False: the deadline passed.
  [[nodiscard]] bool await(Deadline deadline) const noexcept;
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

 private:
  UniqueFd event_;
};

}  // namespace wherry::fabric::inproc
