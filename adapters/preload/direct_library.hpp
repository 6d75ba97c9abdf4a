// SPDX-License-Identifier: Apache-2.0
//
// libwherry-direct.so in this process: loading it, and the scopes of calls of it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/not_cancelled.hpp"
#include "direct/direct.hpp"

namespace wherry::preload {

/// State of a thread that is in a DirectCall.
struct CallState {
  bool active = false;
  std::uint64_t mask_before = 0;
  std::uint32_t deadline_ms = 0;  ///< in ms of the coarse clock
  bool holds_offset = false;      ///< calls that share a descriptor's offset, such as a fork, wait for this thread
};

/// Exists around all calls of libwherry-direct.so. Blocks signals, because a handler might call the library again or
/// leave by a jump, and disables cancellation. A signal that arrives ends a call that waits for the server. The handler
/// then runs, and if it returns, the kernel's call is made.
class DirectCall {
 public:
  /// @param most_ms  how long to wait for the server
  /// @param holds_offset  as in CallState: a call that waits for the server then ends when others wait for the offset
  explicit DirectCall(std::uint32_t most_ms, bool holds_offset = false) noexcept;
  DirectCall(const DirectCall&) = delete;
  DirectCall& operator=(const DirectCall&) = delete;
  ~DirectCall();

  /// Sets how long the call of this thread may wait for the server from now on.
  static void allow(std::uint32_t most_ms) noexcept;

 private:
  std::optional<NotCancelled> not_cancelled_;  ///< lives within the time in which signals are blocked
  CallState before_;
};

/// Limit of transfers. After it the kernel's call waits as the mount does.
inline constexpr std::uint32_t kMostWaitMs = 60'000;
/// Time limits of opening and of closing a file.
inline constexpr std::uint32_t kMostOpenMs = 2000;
inline constexpr std::uint32_t kMostCloseMs = 100;

/// Held while a file is opened, or the library loaded, by one thread at a time. False: another thread does so.
class DirectOpening {
 public:
  DirectOpening() noexcept;
  DirectOpening(const DirectOpening&) = delete;
  DirectOpening& operator=(const DirectOpening&) = delete;
  ~DirectOpening();
  explicit operator bool() const { return is_held_; }

 private:
  bool is_held_;
};

/// Null: it is not loaded.
const Direct* direct_library() noexcept;
/// Loads it. Null: it cannot be loaded. The caller has a DirectCall and a DirectOpening.
const Direct* load_direct_library() noexcept;
/// From now on it counts as one that cannot be loaded.
void never_load_direct() noexcept;
/// Whether libwherry-direct.so is loaded, or cannot be.
bool is_direct_loaded() noexcept;
/// Loads it, unless another thread does so.
void load_direct() noexcept;
/// Whether this thread is in a DirectCall, or is one of libwherry-direct.so's.
bool is_in_direct() noexcept;
/// To be called first in each thread that libwherry-direct.so starts.
void become_thread_of_direct() noexcept;

/// Whether all connections are being closed, or are closed.
bool is_direct_ending() noexcept;
/// No transfer begins from now on. False: another thread has said so.
bool begin_end_of_direct() noexcept;
/// Waits until no thread is in a DirectCall.
void await_direct_calls() noexcept;

/// To be called in a forked child.
void forget_direct_library_after_fork() noexcept;
/// To be called later in a forked child: closes its copies of the parent's connections.
/// @param handled  the library's own fork handlers have run, which free its locks
void close_direct_after_fork(bool handled) noexcept;

}  // namespace wherry::preload
