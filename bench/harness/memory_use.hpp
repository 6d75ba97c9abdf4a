// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace wherry::bench {

/// The proportional set size of this process, in bytes: what a page costs is divided among the processes that map it.
std::uint64_t proportional_memory();

/// The part of it that no file backs: without the pages of programs and libraries, since their shares change
/// with the number of processes that map them.
std::uint64_t proportional_data();

/// What the kernel holds for TCP connections of the whole machine, in bytes: it belongs to no process.
std::uint64_t tcp_memory();

}  // namespace wherry::bench
