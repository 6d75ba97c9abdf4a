// SPDX-License-Identifier: Apache-2.0
// A bell that one thread or process rings and another hears, by sleeping on it or in its own event loop: an eventfd.
// A peer holds the same open file: it may have made it blocking or filled its counter, and no call here hangs on that.
#pragma once

#include <ctime>
#include <utility>

#include "base/beyond_select.hpp"
#include "base/unique_fd.hpp"
#include "fabric/fabric.hpp"

namespace wherry::fabric {

/// All calls from any thread; none blocks but `await`.
class EventBell {
 public:
  /// Throws Error(EMFILE, ENFILE, ENOMEM).
  EventBell();
  /// A bell whose eventfd was made elsewhere.
  explicit EventBell(UniqueFd event) : event_(std::move(event)) {}

  /// The same bell, where no program that uses select() would have liked to have another file.
  [[nodiscard]] EventBell beyond_select() && { return EventBell(wherry::beyond_select(std::move(event_))); }

  void ring() const noexcept;
  /// Returns whether it was rung.
  bool silence() const noexcept;
  /// Sleeps until it is rung, and leaves it so. False: the deadline passed.
  [[nodiscard]] bool await(Deadline deadline) const noexcept;
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

 private:
  UniqueFd event_;
};

/// The time left until a deadline, none if it has passed, as ppoll takes it in `storage`; null: for ever.
const timespec* time_left(const Deadline& deadline, timespec& storage) noexcept;

}  // namespace wherry::fabric
