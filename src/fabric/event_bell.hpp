// SPDX-License-Identifier: Apache-2.0
// A bell that threads of this process ring and one of them hears, by sleeping on it or in its own event loop: an
// eventfd. No peer has it.
#pragma once

#include "base/unique_fd.hpp"
#include "fabric/bell.hpp"
#include "fabric/wait_for_events.hpp"

namespace wherry::fabric {

/// All calls from any thread; none blocks but `await`.
class EventBell {
 public:
  /// Throws Error(EMFILE, ENFILE, ENOMEM).
  EventBell();

  void notify() const noexcept { notify(event_.get()); }
  static void notify(int bell) noexcept;
  /// Returns whether it was rung since it was last silenced.
  bool silence() const noexcept;
  /// Sleeps until it is rung, or claimed to be (wait_for_events), and leaves it so. False: the deadline passed.
  [[nodiscard]] bool await(const Deadline& deadline) const noexcept {
    return wait_until_readable(event_.get(), deadline);
  }
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

 private:
  UniqueFd event_;
};

}  // namespace wherry::fabric
