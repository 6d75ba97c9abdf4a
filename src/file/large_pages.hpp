// SPDX-License-Identifier: Apache-2.0
//
// Large pages for the segment, which its file system does not give by itself: without them each process pays for 512
// page faults where one will do, about 1 us each on a virtual machine, and the first fill of the memory for 512 more.
// Asked for by the card and not by its clients' calls, since the kernel may take milliseconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "file/cache_segment.hpp"

namespace wherry::file {

/// One large page for each that the tables begin in. `bytes`: of them. Where the kernel gives none (before Linux 6.1,
/// or forbidden) all stays as it is.
void gather_tables(int file, std::size_t bytes) noexcept;

class LargePages {
 public:
  using Clock = std::chrono::steady_clock;

  /// Whether runs of the data were filled; to be called after any fill.
  void look(const Segment& segment, Clock::time_point now) noexcept;
  /// Asks for those that were seen some time ago.
  void gather(const Segment& segment, Clock::time_point now) noexcept;
  /// When it is to be called again.
  [[nodiscard]] std::optional<Clock::time_point> next() const;

 private:
  std::optional<Clock::time_point> since_;
  bool refused_ = false;  // by this kernel
};

}  // namespace wherry::file
