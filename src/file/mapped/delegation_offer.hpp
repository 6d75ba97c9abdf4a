// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::file::mapped {

/// Offers a mount memory in which it tells until when an open file is delegated (layout/delegation_page.hpp). The mount
/// keeps it as long as the file is open. Returns a descriptor of the memory, which the caller closes, or -1: the file
/// is not on a mount of `wherry mount`, or not read through the page cache there. Blocks as the mount does. Changes
/// errno.
int offer_delegation_page(int fd) noexcept;

}  // namespace wherry::file::mapped
