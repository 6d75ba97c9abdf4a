// SPDX-License-Identifier: Apache-2.0
// A bell that one thread or process rings and another hears, by sleeping on it or in its own event loop: the
// descriptor of a timer that never goes off by itself. A peer holds the same open file and may do with it what the
// kernel allows, its flags included. So it is never read or written, which could block: the calls that set a timer
// cannot.
#pragma once

#include <utility>

#include "base/beyond_select.hpp"
#include "base/unique_fd.hpp"
#include "fabric/fabric.hpp"
#include "fabric/wait_for_events.hpp"

namespace wherry::fabric {

/// All calls from any thread; none blocks but `await`.
class EventBell {
 public:
  /// Throws Error(EMFILE, ENFILE, ENOMEM).
  EventBell();
  /// A bell that was made elsewhere.
  explicit EventBell(UniqueFd timer) : timer_(std::move(timer)) {}

  /// The same bell, where no program that uses select() would have liked to have another file.
  [[nodiscard]] EventBell beyond_select() && { return EventBell(wherry::beyond_select(std::move(timer_))); }

  void ring() const noexcept { ring(timer_.get()); }
  static void ring(int bell) noexcept;
  /// Returns whether it was rung since it was last silenced. Its descriptor can become readable once more after that,
  /// by a ring that was under way.
  bool silence() const noexcept;
  /// Sleeps until it is rung, or claimed to be (wait_for_events), and leaves it so. False: the deadline passed.
  [[nodiscard]] bool await(const Deadline& deadline) const noexcept {
    return wait_until_readable(timer_.get(), deadline);
  }
  [[nodiscard]] int descriptor() const noexcept { return timer_.get(); }

 private:
  UniqueFd timer_;
};

}  // namespace wherry::fabric
