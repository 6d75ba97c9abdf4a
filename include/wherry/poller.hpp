// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <wherry/stream.hpp>

namespace wherry {

/// Finds the streams that have something to receive, without a look at the others: a thousand idle streams cost a busy
/// one nothing. It can also wait for descriptors (a Listener's, a Connecting's, a stream's send_descriptor(), a timer).
///
/// A stream is ready while bytes, the end or a failure can be received. A stream that stays ready is reported by every
/// wait, in turn with the others. A report may be spurious: receive by calls that do not block.
///
/// Fairness: ready streams are reported in turn. A stream that was quiet joins them once 20 microseconds have passed
/// and 8 more reports (or those of one wait) were made, however busy the others are.
///
/// Threads: one thread uses a poller, receives from its streams, and closes them. Other threads may send on the
/// streams. `cancel` of a stream and `interrupt` may be called from any thread.
///
/// Lifetime: a stream may be moved while it is in a poller. Closing or destroying a stream removes it; destroying the
/// poller removes all. A stream is in at most one poller, and meanwhile its receive_descriptor() reports nothing.
///
/// Fork: a poller belongs to the parent, as a stream does. A child must not use it, and may destroy its copy.
class Poller {
 public:
  class Impl;
  /// The caller's name of a stream or a descriptor.
  using Token = std::uint64_t;

  /// Throws Error: EMFILE, or EINVAL if WHERRY_SPIN is invalid.
  Poller();
  Poller(Poller&&) noexcept;
  Poller& operator=(Poller&&) noexcept;
  ~Poller();

  /// Throws Error: EBADF (the stream is closed), EEXIST (it is in a poller already), EMFILE, ENOSPC (the limit
  /// fs.epoll.max_user_watches).
  void add(Stream& stream, Token token);
  /// Does nothing if the stream is not in this poller.
  void remove(Stream& stream) noexcept;
  /// Adds a descriptor, which is reported when it is readable. The caller still owns it. Throws Error: EBADF, EPERM (a
  /// file that is always ready), EEXIST, ENOSPC.
  void add(int descriptor, Token token);
  /// Must be called before the descriptor is closed. Does nothing if it is not in this poller.
  void remove(int descriptor) noexcept;

  /// Blocks until something is ready, the timeout has passed, or `interrupt` was called. Writes the tokens of what is
  /// ready to the front of `ready`, each once. Returns their number: 0 after a timeout or an interruption, or if
  /// `ready` is empty. Never throws and never allocates.
  std::size_t wait(std::span<Token> ready, Timeout timeout = {}) noexcept;
  /// Makes the current wait, or else the next, return at once. May be called from any thread.
  void interrupt() noexcept;
  /// A descriptor for poll, select and epoll, to use this poller inside another event loop. Readable while a wait may
  /// have something to report. A wait that reports nothing silences it. It belongs to the poller.
  int descriptor() noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
