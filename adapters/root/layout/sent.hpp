// SPDX-License-Identifier: Apache-2.0
// How many bytes of its stream a side of a ROOT socket has sent. The page is a window of that side's, at offset
// kRootSentOffset. The sender stores the count after its call to send has returned, hence after it rang the receiver's
// bell. A receiver that has received that many bytes and then clears its bell gets no further ring for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "layout/bell_page.hpp"

namespace wherry::layout {

inline constexpr std::uint64_t kRootSentVersion = 1;
inline constexpr std::uint64_t kRootSentOffset = std::uint64_t{1} << 40;
inline constexpr std::size_t kRootSentBytes = 4096;

struct RootSentPage {
  std::uint64_t version;  // W: sender, once, before the window is registered
  std::uint64_t reserved0[7];
  alignas(64) Word sent;  // W: sender, release (SENT); bytes of its stream since the beginning
  std::uint64_t reserved1[7];
};
static_assert(std::is_standard_layout_v<RootSentPage> && sizeof(RootSentPage) == 128);
static_assert(offsetof(RootSentPage, version) == 0 && offsetof(RootSentPage, sent) == 64);

}  // namespace wherry::layout
