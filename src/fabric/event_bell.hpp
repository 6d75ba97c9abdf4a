// SPDX-License-Identifier: Apache-2.0
// A bell between threads of this process: an eventfd. Any thread rings it; one thread sleeps on it, or watches it in
// its event loop. Peers have no access to it.
#pragma once

#include "base/unique_fd.hpp"
#include "fabric/bell.hpp"
#include "fabric/wait_for_events.hpp"

namespace wherry::fabric {

/// Thread-safe. Only `await` blocks.
class EventBell {
 public:
  /// Throws Error(EMFILE, ENFILE, ENOMEM).
  EventBell();

  void notify() const noexcept { notify(event_.get()); }
  static void notify(int bell) noexcept;
  /// Returns whether it was rung since it was last silenced.
  bool silence() const noexcept;
  /// Sleeps until the bell is rung, and does not silence it. May return early (wait_for_events). False: the deadline
  /// has passed.
  [[nodiscard]] bool await(const Deadline& deadline) const noexcept {
    return wait_until_readable(event_.get(), deadline);
  }
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

 private:
  UniqueFd event_;
};

}  // namespace wherry::fabric
