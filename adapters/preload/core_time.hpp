// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace wherry::preload {

/// How long a thread has run on a core, and how long it could have run but had none.
struct CoreTime {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0;
};

/// Returns the calling thread's times since the last call that returned some. Nothing if that was a few ms ago, or if
/// the kernel does not tell. Opens and closes a file, which takes about 5 us.
std::optional<CoreTime> more_core_time() noexcept;

}  // namespace wherry::preload
