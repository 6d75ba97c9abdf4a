// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "file/mount/kept_state.hpp"

namespace wherry::file::mount {

/// Errors of writes that were acknowledged before they were made. Each is told once. Threads: any.
class DeferredErrors {
 public:
  /// The next daemon tells of what this one has not. Before any other call.
  /// @param state  null: there is none
  /// @param number  of the open file
  /// @param left  by an earlier daemon: layout::KeptOpen::errors
  void keep_in(KeptState* state, std::uint64_t number, std::uint32_t left = 0) {
    state_ = state;
    number_ = number;
    own_ = static_cast<int>(left & kMask);
    other_ = static_cast<int>(left >> kShift);
  }

  /// Of a write by this open file: told by its next write, fsync or close.
  void note(int error) { note(own_, error); }
  /// Of a write by another open file of the same file: told by the next fsync.
  void note_other(int error) { note(other_, error); }
  /// 0: there is none.
  [[nodiscard]] int take() { return take(own_); }
  [[nodiscard]] int take_for_sync() {
    const int other = take(other_);
    const int own = take();
    return own != 0 ? own : other;
  }
  /// An error that no call has told of yet.
  [[nodiscard]] int pending() const { return own_.load(std::memory_order_relaxed); }
  /// As layout::KeptOpen::errors.
  [[nodiscard]] std::uint32_t untold() const {
    return static_cast<std::uint32_t>(pending()) | static_cast<std::uint32_t>(other_.load(std::memory_order_relaxed))
                                                       << kShift;
  }

 private:
  static constexpr unsigned kShift = 16;
  static constexpr std::uint32_t kMask = (std::uint32_t{1} << kShift) - 1;

  void note(std::atomic<int>& place, int error) {
    int none = 0;
    if (place.compare_exchange_strong(none, error, std::memory_order_relaxed)) keep();
  }
  int take(std::atomic<int>& place) {
    if (place.load(std::memory_order_relaxed) == 0) return 0;
    const int error = place.exchange(0, std::memory_order_relaxed);
    keep();
    return error;
  }
  /// Looked at with the batch's lock: the last one that is added is right.
  void keep() const {
    KeptState::Batch batch(state_);
    if (state_ != nullptr) batch.add(layout::KeptWord::failed, number_, untold());
  }

  KeptState* state_ = nullptr;
  std::uint64_t number_ = 0;
  std::atomic<int> own_{0};
  std::atomic<int> other_{0};
};

}  // namespace wherry::file::mount
