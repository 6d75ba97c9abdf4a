// SPDX-License-Identifier: Apache-2.0
// Definitions that linux/fuse.h has from 7.40 (Linux 6.9) on, for a server that replaces another one.
#pragma once

#include <cstdint>

namespace wherry::layout {

inline constexpr std::uint32_t kFuseHasResend = 1U << 7;  ///< FUSE_HAS_RESEND, in flags2 of the kernel's INIT
inline constexpr std::int32_t kFuseNotifyResend = 7;      ///< FUSE_NOTIFY_RESEND
/// FUSE_UNIQUE_RESEND, a bit of a request's number: the request was read before.
inline constexpr std::uint64_t kFuseUniqueResend = std::uint64_t{1} << 63;

}  // namespace wherry::layout
