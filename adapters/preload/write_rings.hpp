// SPDX-License-Identifier: Apache-2.0
//
// Rings by which this process gives writes to a mount's daemon (src/layout/write_ring.hpp): one for each descriptor in
// mode `ring`. The ring has the descriptor's offset.
//
// A slot counts its users: its descriptor, and each call. The last user unmaps the ring. A call that finds another one
// in progress, in another thread or in the code that a handler interrupts, does nothing: its caller ends the ring.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <optional>

#include "descriptors.hpp"

namespace wherry::preload {

/// Calls of writev with more parts are the kernel's.
inline constexpr int kMostPartsByRing = 16;

/// For a descriptor of mode `own`: offers a ring to the mount. The mode is then `ring`; or `never` if the file is not a
/// mount's or may have no ring; or it stays. Each attempt is made after twice as many writes as the one before.
void make_ring(int fd, Entry& entry, State before) noexcept;
/// Whether the descriptor has a ring.
bool has_ring(int fd) noexcept;
/// Whether the descriptor only writes, and few rings were offered for it yet.
bool may_have_first_ring(const Entry& entry) noexcept;
/// Whether this many writes were made since the last attempt.
bool is_time_for_ring(const Entry& entry, State state) noexcept;

/// write(2), or pwrite(2) if `at` is not null. An append is written as a whole, or not at all. Returns how many bytes
/// are written: fewer if the ring has ended, or if the kernel must check the call.
std::size_t write_by_ring(int fd, const void* buffer, std::size_t bytes, const off_t* at) noexcept;
/// writev(2), all of it or nothing. Returns how many bytes are written.
std::size_t write_parts_by_ring(int fd, const iovec* parts, int count) noexcept;
/// Whether the descriptor has a ring, and O_APPEND. The kernel compares an append with the limit of file sizes by the
/// size that it knows, so the ring must end before one.
bool appends_by_ring(int fd) noexcept;
/// lseek(2). Empty: the caller ends the ring.
std::optional<off_t> seek_in_ring(int fd, off_t offset, int whence) noexcept;

/// Ends the ring of a descriptor: no further write is made by it. Returns the offset; empty if there was no ring.
std::optional<off_t> end_ring(int fd) noexcept;
/// The same, for a descriptor whose offset does not matter any more.
void forget_ring(int fd) noexcept;
/// Ends rings whose memory overlaps this range.
void give_up_rings(const void* begin, std::size_t bytes) noexcept;
/// Ends all rings.
void give_up_all_rings() noexcept;
void forget_rings_after_fork() noexcept;

/// To be called before the limit of file sizes may change: from now on each write asks for it.
void file_size_limit_changes() noexcept;

}  // namespace wherry::preload
