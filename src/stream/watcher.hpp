// SPDX-License-Identifier: Apache-2.0
// The interface of an object that waits for a receiver's bell in its place: a Poller, for many receivers at once.
#pragma once

namespace wherry::stream {

/// Called by the receiving thread.
class Watcher {
 public:
  /// A blocking call slept on the bell and used up its ring: the bell is no longer armed.
  virtual void bell_used() noexcept = 0;
  /// The receiver is about to be destroyed, and its bell with it.
  virtual void leaving() noexcept = 0;

 protected:
  ~Watcher() = default;
};

}  // namespace wherry::stream
