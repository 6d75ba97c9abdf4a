// SPDX-License-Identifier: Apache-2.0
// The queue of events from the server's thread to the program.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "base/unique_fd.hpp"
#include "server.hpp"

namespace wherry::root {

/// Thread-safe: any thread may call any function.
class Events {
 public:
  Events();

  void push(Event event);
  std::optional<Event> next(Timeout timeout);
  /// Returns the number of queued events.
  [[nodiscard]] std::size_t size();
  void interrupt();
  /// Readable while `next` would not block.
  [[nodiscard]] int descriptor();

 private:
  void show();
  void hide();

  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<Event> events_;
  bool interrupted_ = false;
  bool watched_ = false;  ///< descriptor() was called; before that the eventfd is not written
  bool shown_ = false;    ///< the descriptor is readable
  UniqueFd readable_;
};

}  // namespace wherry::root
