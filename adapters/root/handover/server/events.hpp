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

/// From any threads.
class Events {
 public:
  Events();

  void push(Event event);
  std::optional<Event> next(Timeout timeout);
  /// Returns how many wait for `next`.
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
  bool watched_ = false;  ///< the descriptor was given out
  bool shown_ = false;    ///< whether it is readable
  UniqueFd readable_;
};

}  // namespace wherry::root
