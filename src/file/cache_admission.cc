// SPDX-License-Identifier: Apache-2.0
//
// Which misses fill. A block of 16 KiB is read for a read that wants less of it: small reads in order get that back at
// once, one call of the kernel's instead of several. All others only if the block is wanted again: filling costs a copy
// more than the kernel's own call, and from kLargeRead up nothing is saved on the way.
#include "file/cache.hpp"

namespace wherry::file {

Admission admission(std::size_t length, bool in_order) noexcept {
  return in_order && length < kLargeRead ? Admission::first_touch : Admission::second_touch;
}

}  // namespace wherry::file
