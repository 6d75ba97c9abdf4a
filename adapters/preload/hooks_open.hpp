// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::preload {

/// To be called after an open, with its result, which it returns.
int opened(int fd, int flags) noexcept;

/// To be called after a call that gave another number to an open file, with its result, which it returns.
int doubled(int fd) noexcept;

/// To be called before these descriptors are closed.
void forget_range(unsigned first, unsigned last) noexcept;

}  // namespace wherry::preload
