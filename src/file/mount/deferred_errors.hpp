// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "file/mount/kept_state.hpp"

namespace wherry::file::mount {

/// Errors of writes that were acknowledged before they were made. An fsync is the last to tell of one. The kernel may
/// drop what others tell: the error of a write(2) that it has split, if an earlier part of it was written, and that of
/// the close of a process that exits. So a write tells of an error once, and each close does, until an fsync has.
///
/// If the daemon is killed just after the kernel has an answer, the next daemon tells the same error again. Threads:
/// any. Nothing blocks.
class DeferredErrors {
 public:
  /// The next daemon tells of what this one has not. Before any other call.
  /// @param state  null: there is none
  /// @param number  of the open file
  /// @param left  by an earlier daemon: layout::KeptOpen::errors
  void keep_in(KeptState* state, std::uint64_t number, std::uint32_t left = 0);

  /// Of a write by this open file: told by its next write, and by its next fsync and each close before that.
  void note(int error);
  /// Of a write by another open file of the same file: told by the next fsync.
  void note_other(int error);
  /// For the answer to the request that this thread serves. 0: there is none.
  [[nodiscard]] int take_for_write();
  [[nodiscard]] int take_for_close();
  [[nodiscard]] int take_for_sync();
  /// Of which no fsync has told, when the file is closed for good.
  [[nodiscard]] int take_last();
  /// An error that no call has told of yet.
  [[nodiscard]] int pending() const;
  /// As layout::KeptOpen::errors.
  [[nodiscard]] std::uint32_t untold() const;

 private:
  struct Errors {
    int own = 0;
    int other = 0;
    bool is_told = false;  ///< of `own`: by a write or close
    [[nodiscard]] bool any() const { return own != 0 || other != 0; }
    [[nodiscard]] std::uint32_t word() const;  ///< layout::KeptOpen::errors
  };
  /// Outlives the open file until the last answer is sent.
  struct Shared {
    void keep() const;
    void finish();

    KeptState* state = nullptr;
    std::uint64_t number = 0;
    std::atomic<bool> any{false};  ///< of `now`
    std::mutex mutex;
    Errors now{};     ///< that no call tells of
    Errors kept{};    ///< for the next daemon: with those of calls that are not answered
    int telling = 0;  ///< such calls
  };

  template <class Note>
  void note(Note into);
  template <class Take>
  int take(Take from);

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace wherry::file::mount
