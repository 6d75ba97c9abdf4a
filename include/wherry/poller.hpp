// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <wherry/stream.hpp>

namespace wherry {

/// Finds out which of many streams have something to receive, without looking at the others: a thousand idle streams
/// cost a busy one nothing. Descriptors (a Listener's, a Connecting's, a stream's send_descriptor(), a timer) may be
/// waited for along with them.
///
/// A stream is ready while bytes, the end or a failure wait to be received; one that stays so is reported again by
/// every wait, in turn with the others. A report may prove spurious: receive by calls that do not block.
///
/// Fairness: ready streams are reported in turn. However busy they are, one that had been quiet joins them once 20
/// microseconds have passed and 8 more reports (or those of one wait) were made.
///
/// Threads: one thread uses a poller, and receives from its streams, and closes them; others may send on them. `cancel`
/// of a stream and `interrupt` may be called from any thread.
///
/// Lifetime: a stream may be moved while it is in a poller. Closing or destroying it takes it out, destroying the
/// poller takes out all. A stream is in one poller at most, and while it is, its own receive_descriptor() says nothing.
///
/// Fork: as a stream, a poller stays the parent's; a child must not use it, and may destroy its copy.
class Poller {
 public:
  class Impl;
  /// What the caller knows a stream or a descriptor by.
  using Token = std::uint64_t;

  /// Throws Error: EMFILE, or EINVAL for a bad setting of WHERRY_SPIN.
  Poller();
  Poller(Poller&&) noexcept;
  Poller& operator=(Poller&&) noexcept;
  ~Poller();

  /// Throws Error: EBADF (the stream is closed), EEXIST (it is in a poller already), EMFILE, ENOSPC (the limit
  /// fs.epoll.max_user_watches).
  void add(Stream& stream, Token token);
  /// Does nothing if the stream is not in this poller.
  void remove(Stream& stream) noexcept;
  /// Waits for a descriptor to become readable, too; it stays the caller's. Throws Error: EBADF, EPERM (a file that is
  /// always ready), EEXIST, ENOSPC.
  void add(int descriptor, Token token);
  /// To be called before the descriptor is closed. Does nothing if it is not in this poller.
  void remove(int descriptor) noexcept;

  /// Blocks until something is ready, the timeout has passed, or `interrupt` was called. Puts the tokens of what is
  /// ready into the front of `ready`, each once, and returns how many: 0 after a timeout or an interruption, or if
  /// `ready` is empty. Never throws nor allocates.
  std::size_t wait(std::span<Token> ready, Timeout timeout = {}) noexcept;
  /// Makes the wait under way, or else the next, return at once. From any thread.
  void interrupt() noexcept;
  /// A descriptor for poll, select and epoll, to use this poller inside another event loop. Readable while a wait may
  /// have something to report; a wait that reports nothing silences it. Belongs to the poller.
  int descriptor() noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
