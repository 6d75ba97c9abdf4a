// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace wherry::preload {

/// What follows an open, with its result; returns it.
int opened(int fd, int flags) noexcept;

/// What follows a call that gave another number to something that is open already; returns it.
int doubled(int fd) noexcept;

/// Before these are closed.
void forget_range(unsigned first, unsigned last) noexcept;

}  // namespace wherry::preload
