// SPDX-License-Identifier: Apache-2.0
//
// Counts of truncations, which the processes of a user share. After a truncation the page in which a file ends stays
// mapped, with zeros behind the end: a reader of a mapping that knows the old size would return them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "file/mapped/layout/truncation_page.hpp"

namespace wherry::file::mapped {

/// To be called after each call that may have made a file shorter, before it returns to the program. Keeps errno.
void note_truncation(dev_t device, ino_t inode) noexcept;
/// The same, of an open file.
void note_truncation(int fd) noexcept;
/// ftruncate(2), noted: 0 or an errno value.
int set_size(int fd, std::uint64_t size) noexcept;

/// The same where it is not known which file that was.
void note_any_truncation() noexcept;

using TruncationCounter = std::atomic<std::uint32_t>;

/// The counter of a file, which lives as long as the process. It is this process's own where /dev/shm cannot be used.
/// Keeps errno.
const TruncationCounter& truncation_counter(dev_t device, ino_t inode) noexcept;

/// Adds one to it; nothing if its page is gone. A system call, in which that is an error and no signal. Keeps errno.
void count_in(TruncationCounter& counter) noexcept;

/// Reads it; nothing if its page is gone: another process of the user has cut the file in /dev/shm.
bool read_counter(const TruncationCounter& counter, std::uint32_t& value) noexcept;

}  // namespace wherry::file::mapped
