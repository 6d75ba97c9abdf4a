// SPDX-License-Identifier: Apache-2.0
//
// Counters of truncations, shared by the processes of a user. After a truncation the page that contains the new end
// stays mapped, with zeros after the end. A reader of a mapping that knows the old size would return these zeros.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "file/mapped/layout/truncation_page.hpp"

namespace wherry::file::mapped {

/// Call after each call that may have shortened a file, before it returns to the program. Keeps errno.
void note_truncation(dev_t device, ino_t inode) noexcept;
/// As above, for an open file.
void note_truncation(int fd) noexcept;
/// ftruncate(2) and note_truncation(). Returns 0 or an errno value.
int set_size(int fd, std::uint64_t size) noexcept;

/// As note_truncation(), if the file is unknown: counts for all files.
void note_any_truncation() noexcept;

using TruncationCounter = std::atomic<std::uint32_t>;

/// The counter of a file; valid for the life of the process. If /dev/shm is unusable, the counter is private to this
/// process. Keeps errno.
const TruncationCounter& truncation_counter(dev_t device, ino_t inode) noexcept;

/// Increments the counter; does nothing if its page is gone. Uses a system call, which then fails instead of raising a
/// signal. Keeps errno.
void count_in(TruncationCounter& counter) noexcept;

/// Reads the counter. False: its page is gone, because another process of the user has truncated the file in /dev/shm.
bool read_counter(const TruncationCounter& counter, std::uint32_t& value) noexcept;

}  // namespace wherry::file::mapped
