// SPDX-License-Identifier: Apache-2.0
//
// The mappings of this process: at most kMostRegions, with eviction of the least recently used. A forked child inherits
// none of them (MADV_DONTFORK): a mapping would keep the parent's open file, with its locks, from being closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "file/mapped/signals_blocked.hpp"

namespace wherry::file::mapped {

inline constexpr std::uint32_t kMostRegions = 1024;
inline constexpr std::uint32_t kNoRegion = ~std::uint32_t{0};

/// Called before an owner's region is unmapped to make room. After it returns, the owner must discard what its copies
/// read from the region. It is called with the table locked, and must not use the table.
using Revoke = void (*)(std::uintptr_t owner, std::uint32_t region);

struct Region {
  std::uint32_t number = kNoRegion;
  std::span<const std::byte> bytes;
  const std::byte* page = nullptr;  ///< of the other memory, mapped as long as the file
};

/// Lock of the table, and of each owner's knowledge of its region. All signals are blocked meanwhile: a handler could
/// leave by a jump. Keeps errno.
class RegionsLock {
 public:
  RegionsLock() noexcept;
  ~RegionsLock();
  RegionsLock(const RegionsLock&) = delete;
  RegionsLock& operator=(const RegionsLock&) = delete;

 private:
  SignalsBlocked blocked_;
  int error_;
};

/// Maps the first `bytes` of the file for reading. kNoRegion: the kernel refuses, or this process maps nothing because
/// its address space is limited, or map_no_more() was called because its maps are to be locked in memory.
/// @param bytes  whole pages
/// @param other  a descriptor of other memory, whose first page is mapped behind the file; -1: none
Region map_region(const RegionsLock& held, int fd, std::size_t bytes, std::uintptr_t owner, Revoke revoke,
                  int other = -1) noexcept;

/// Unmaps the region, unless it has another owner by now.
void unmap_region(const RegionsLock& held, std::uint32_t region, std::uintptr_t owner) noexcept;

/// Revokes and unmaps all regions in this range, before its addresses are used for something else. Keeps errno.
void give_up_regions(const void* begin, std::size_t bytes, Revoke revoke) noexcept;

/// Held during a call of the program that uses addresses for something else. Revokes and unmaps the regions there, and
/// prevents all mapping until the call has returned. Keeps the errno of the call. Does nothing if this process has
/// mapped no file yet.
class PlaceTaken {
 public:
  PlaceTaken(const void* begin, std::size_t bytes, Revoke revoke) noexcept;
  ~PlaceTaken();
  PlaceTaken(const PlaceTaken&) = delete;
  PlaceTaken& operator=(const PlaceTaken&) = delete;

 private:
  std::optional<RegionsLock> lock_;
};

/// Records a use of the region.
void touch_region(std::uint32_t region, std::uint64_t now) noexcept;

/// Prevents all mapping from now on; waits for one in progress. Existing mappings stay until they are unmapped. Keeps
/// errno.
void map_no_more() noexcept;

/// Call in a forked child.
void forget_regions_after_fork() noexcept;

}  // namespace wherry::file::mapped
