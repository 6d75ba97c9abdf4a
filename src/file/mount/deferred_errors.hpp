// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "file/mount/kept_state.hpp"

namespace wherry::file::mount {

/// Errors of writes that were acknowledged before they reached the server. Only an fsync reports an error reliably. The
/// kernel may drop the error of a write(2) that it has split, if an earlier part succeeded. It also drops the error of
/// the close by an exiting process. So one write reports the error, and every close does, until an fsync has reported
/// it.
///
/// If the daemon is killed just after the kernel got an answer, the next daemon reports the same error again.
/// Thread-safe. Never blocks.
class DeferredErrors {
 public:
  /// Keeps unreported errors for the next daemon. Must be the first call.
  /// @param state  null: errors are not kept
  /// @param number  of the open file
  /// @param left  errors from an earlier daemon: layout::KeptOpen::errors
  void keep_in(KeptState* state, std::uint64_t number, std::uint32_t left = 0);

  /// Records an error of a write by this open file: for its next write, and for each close until an fsync reports it.
  void note(int error);
  /// Records an error of a write by another open file of the same file: for the next fsync.
  void note_other(int error);
  /// The error to report in the answer to this thread's request. 0: none.
  [[nodiscard]] int take_for_write();
  [[nodiscard]] int take_for_close();
  [[nodiscard]] int take_for_sync();
  /// The error that no fsync has reported, when the file is closed for good.
  [[nodiscard]] int take_last();
  /// An error that no call has reported yet.
  [[nodiscard]] int pending() const;
  /// As layout::KeptOpen::errors.
  [[nodiscard]] std::uint32_t unreported() const;

 private:
  struct Errors {
    int own = 0;
    int other = 0;
    bool is_reported = false;  ///< a write or close has reported `own`
    [[nodiscard]] bool any() const { return own != 0 || other != 0; }
    [[nodiscard]] std::uint32_t word() const;  ///< layout::KeptOpen::errors
  };
  /// Outlives the open file until the last answer is sent.
  struct Shared {
    void keep() const;
    void finish();

    KeptState* state = nullptr;
    std::uint64_t number = 0;
    std::atomic<bool> any{false};  ///< whether `now` has an error
    std::mutex mutex;
    Errors now{};       ///< errors not reported by any call
    Errors kept{};      ///< errors for the next daemon: `now`, and those of unanswered calls
    int reporting = 0;  ///< number of unanswered calls that report an error
  };

  template <class Note>
  void note(Note into);
  template <class Take>
  int take(Take from);

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace wherry::file::mount
