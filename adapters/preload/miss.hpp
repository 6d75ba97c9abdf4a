// SPDX-License-Identifier: Apache-2.0
//
// Reads that are not wholly in the cache.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "descriptors.hpp"
#include "file/cache.hpp"

namespace wherry::preload {

/// A tracked descriptor, as it was when a call began.
struct Tracked {
  int fd;
  Entry& entry;
  State state;
  file::Cache& cache;
  file::File file;
};

/// Whether it is the file that the descriptor was tracked for.
bool is_file_of(const Entry& entry, const struct ::stat& status) noexcept;

/// Fills what is to be filled, and reads it from there. False: the read is the kernel's, from the beginning. `whole`:
/// of the call, of which `to` may be one part.
bool read_by_filling(const Tracked& tracked, std::uint64_t offset, std::span<std::byte> to);

}  // namespace wherry::preload
