// SPDX-License-Identifier: Apache-2.0
// Whole messages through a blocking byte stream of the kernel's: a TCP or Unix socket, a pipe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace wherry::bench {

/// Throws std::system_error with `what` unless it holds; for calls that set errno.
void check(bool holds, const char* what);

/// write() until all of it is gone.
void write_all_to(int descriptor, std::span<const std::byte> bytes);

/// read() until the buffer is full. Throws if the stream ends before that.
void read_all_from(int descriptor, std::span<std::byte> buffer);

}  // namespace wherry::bench
