// SPDX-License-Identifier: Apache-2.0
//
// Costs of this process's transfers on the path `auto`: through the mount, and past it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "direct_files.hpp"
#include "file/direct/path_costs.hpp"

namespace wherry::preload {

/// The way chosen for one transfer, and the time when it began.
class ChosenWay {
 public:
  using Kind = file::PathCosts::Kind;
  using Way = file::PathCosts::Way;

  /// No choice: the call is the kernel's.
  ChosenWay() = default;
  /// Chooses a way by the file's path, or on `auto` by the cost of earlier transfers. The caller has a DirectCall.
  ChosenWay(const DirectUse& use, Kind kind, std::uint64_t offset, std::size_t bytes) noexcept;

  /// The same for a write to a file on the path `auto` that this process has not opened at the server. While it has,
  /// the mount cannot keep writes to the file, so those by the kernel take longer.
  static ChosenWay before_opening(int fd, std::size_t bytes) noexcept;

  [[nodiscard]] bool is(Way way) const { return choice_ && choice_->way == way; }
  /// Whether the slower way was chosen, to measure it. For a write to a file that is open at the server: that must be
  /// closed first.
  [[nodiscard]] bool explores() const { return choice_ && choice_->explores; }
  /// Whether the way is expected to be the faster one.
  [[nodiscard]] bool is_best() const { return choice_ && !choice_->explores; }
  /// The transfer begins now, later than the choice.
  void begin(const DirectUse& use) noexcept;
  /// To be called after the transfer, which has moved `moved` bytes. Records its time if those are all.
  /// @param typical  false: a repetition would be faster
  void note(ssize_t moved, bool typical = true) const noexcept;

 private:
  void begin() noexcept;
  void choose_for_read(const DirectUse& use, std::uint64_t offset) noexcept;
  void choose_for_write(const DirectUse& use) noexcept;
  void choose_for_write(int fd) noexcept;

  std::optional<file::PathCosts::Choice> choice_;
  file::PathCosts::Transfer transfer_;
  std::uint64_t begun_ = 0;  ///< in ns; 0: nothing is recorded
  bool is_typical_ = true;
};

/// To be called in a forked child: forgets the calls and the page in which others see them, which are the parent's.
/// Keeps the estimates.
void forget_costs_after_fork() noexcept;

}  // namespace wherry::preload
