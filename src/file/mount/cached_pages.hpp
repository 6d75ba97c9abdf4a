// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "file/wire/layout/wire.hpp"

namespace wherry::file::mount {

/// Which state of a file on the host the kernel's pages hold. An open that finds the file in that state keeps the
/// pages; any other open drops them.
///
/// An open that drops the pages may record the state that the server has found, if the server has also found it stable:
/// nobody had the file open for writing then, so each later change gives it another state. All pages are from a later
/// time than that. A write on this mount puts pages into the kernel that may never reach the host, so it ends what was
/// recorded.
///
/// Thread-safe. Never blocks for long.
class CachedPages {
 public:
  /// A change of a stable file changes at least one of these.
  struct State {
    std::uint64_t size;
    std::int64_t modified_seconds;
    std::uint32_t modified_nanoseconds;
    std::int64_t changed_seconds;
    std::uint32_t changed_nanoseconds;
    bool operator==(const State&) const = default;
  };
  static State state_of(const layout::FileStatus& status) {
    return {.size = status.size,
            .modified_seconds = status.modified.seconds,
            .modified_nanoseconds = status.modified.nanoseconds,
            .changed_seconds = status.changed.seconds,
            .changed_nanoseconds = status.changed.nanoseconds};
  }
  /// The state at an open, and the number of writes before the open asked the server.
  struct Opened {
    State state;
    std::uint64_t writes;
  };

  [[nodiscard]] std::uint64_t writes() const {
    const std::lock_guard lock(mutex_);
    return writes_;
  }
  /// Call before the data of a write on this mount goes anywhere.
  void note_write() {
    const std::lock_guard lock(mutex_);
    writes_++;
    known_.reset();
  }
  /// Whether the kernel's pages are those of the state.
  [[nodiscard]] bool hold(const State& state) const {
    const std::lock_guard lock(mutex_);
    return known_ == state;
  }
  /// Call once the kernel has dropped all pages from before the open.
  void record(const Opened& opened) {
    const std::lock_guard lock(mutex_);
    if (opened.writes == writes_) known_ = opened.state;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t writes_ = 0;
  std::optional<State> known_;
};

}  // namespace wherry::file::mount
