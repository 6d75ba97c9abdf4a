// SPDX-License-Identifier: Apache-2.0
//
// The mappings of this process: at most kMostRegions, the least recently used one makes room. A forked child has none
// of its parent's (MADV_DONTFORK): a mapping would keep the parent's open file, with its locks, from being closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "file/mapped/signals_blocked.hpp"

namespace wherry::file::mapped {

inline constexpr std::uint32_t kMostRegions = 1024;
inline constexpr std::uint32_t kNoRegion = ~std::uint32_t{0};

/// Called before the region of an owner is unmapped for another one. Afterwards nothing that a copy reads from the
/// region may count. It is called with the table locked, and must not use it.
using Revoke = void (*)(std::uintptr_t owner, std::uint32_t region);

struct Region {
  std::uint32_t number = kNoRegion;
  std::span<const std::byte> bytes;
};

/// Held while the table changes, and what an owner knows of its region. Others wait; no handler runs meanwhile, which
/// might leave by a jump. Keeps errno.
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

/// Maps the first `bytes` of the file to read. No number: the kernel refuses, or this process maps nothing (its address
/// space is limited, or maps are to be locked in memory).
Region map_region(const RegionsLock& held, int fd, std::size_t bytes, std::uintptr_t owner, Revoke revoke) noexcept;

/// Unmaps it, unless it is another owner's by now.
void unmap_region(const RegionsLock& held, std::uint32_t region, std::uintptr_t owner) noexcept;

/// Before these addresses are given to something else: revokes and unmaps the regions that lie there. Keeps errno.
void give_up_regions(const void* begin, std::size_t bytes, Revoke revoke) noexcept;

/// While a call of the program's gives addresses to something else: the regions that lay there are revoked and
/// unmapped, and no file is mapped anywhere until the call has returned. Keeps errno as the call leaves it. Where this
/// process has mapped no file yet it does nothing.
class PlaceTaken {
 public:
  PlaceTaken(const void* begin, std::size_t bytes, Revoke revoke) noexcept;
  ~PlaceTaken();
  PlaceTaken(const PlaceTaken&) = delete;
  PlaceTaken& operator=(const PlaceTaken&) = delete;

 private:
  std::optional<RegionsLock> lock_;
};

/// The region was used at this time.
void touch_region(std::uint32_t region, std::uint64_t now) noexcept;

/// From now on this process maps nothing: a map under way has ended when this returns. What is mapped stays until it is
/// unmapped. Keeps errno.
void map_no_more() noexcept;

/// In a forked child.
void forget_regions_after_fork() noexcept;

}  // namespace wherry::file::mapped
