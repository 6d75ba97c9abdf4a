// SPDX-License-Identifier: Apache-2.0
//
// What transfers of this process took, on the path `auto`: by the mount, and past it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "direct_files.hpp"
#include "file/direct/path_costs.hpp"

namespace wherry::preload {

/// The way of one transfer, and when it began.
class ChosenWay {
 public:
  using Kind = file::PathCosts::Kind;
  using Way = file::PathCosts::Way;

  /// None is chosen: the call is the kernel's.
  ChosenWay() = default;
  /// For the holder of a DirectCall. The file's path decides, or on `auto` what earlier transfers took.
  ChosenWay(const DirectUse& use, Kind kind, std::uint64_t offset, std::size_t bytes) noexcept;

  [[nodiscard]] bool is(Way way) const { return choice_ && choice_->way == way; }
  /// After the transfer, which has moved so much: counts the time that it took if that is all.
  void note(ssize_t moved) const noexcept;

 private:
  std::optional<file::PathCosts::Choice> choice_;
  file::PathCosts::Transfer transfer_;
  std::uint64_t begun_ = 0;  ///< in ns; 0: the path is `host`, and nothing is counted
  long preemptions_ = 0;     ///< of the thread before
};

/// In the forked child: the calls, and the page in which others see them, are the parent's. The estimates stay.
void forget_costs_after_fork() noexcept;

}  // namespace wherry::preload
