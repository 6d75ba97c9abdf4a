// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/regions.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cerrno>

namespace wherry::file::mapped {
namespace {

struct Slot {
  void* begin;  // null: free
  std::size_t bytes;
  std::uintptr_t owner;
  std::atomic<std::uint64_t> used;
};

// Pages of zeros take no memory until they are written to.
constinit std::array<Slot, kMostRegions> slots{};
constinit std::uint32_t slots_used = 0;  // those from here on were never in use
constinit std::atomic<bool> locked{false};
constinit bool maps_no_more = false;
// Of a mapping that a fork would copy: it is not yet kept out of children. None: no address.
constinit std::atomic<void*> unprotected{nullptr};
constinit std::size_t unprotected_bytes = 0;

void unmap(Slot& slot) {
  ::munmap(slot.begin, slot.bytes);
  slot.begin = nullptr;
}

/// A free slot; if there is none, the least recently used one, whose owner loses it.
std::uint32_t take_slot(Revoke revoke) {
  std::uint32_t oldest = 0;
  for (std::uint32_t i = 0; i < slots_used; i++) {
    if (slots[i].begin == nullptr) return i;
    const std::uint64_t used = slots[i].used.load(std::memory_order_relaxed);
    if (used < slots[oldest].used.load(std::memory_order_relaxed)) oldest = i;
  }
  if (slots_used < kMostRegions) return slots_used++;
  revoke(slots[oldest].owner, oldest);
  unmap(slots[oldest]);
  return oldest;
}

/// Maps the file where addresses were reserved before: a child that is forked meanwhile knows what it must unmap.
/// Private, as a shared mapping of a descriptor that can write counts as a writer. Nothing writes to it.
void* map_protected(int fd, std::size_t bytes) {
  void* const place = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  unprotected_bytes = bytes;
  unprotected.store(place, std::memory_order_release);  // UNPROTECTED release: its length
  const bool mapped = ::mmap(place, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == place &&
                      ::madvise(place, bytes, MADV_DONTFORK) == 0;
  unprotected.store(nullptr, std::memory_order_relaxed);
  if (mapped) return place;
  ::munmap(place, bytes);
  return nullptr;
}

bool address_space_is_limited() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

RegionsLock::RegionsLock() noexcept : error_(errno) {
  while (locked.exchange(true, std::memory_order_acquire)) sched_yield();  // REGIONS acquire: the table
}

RegionsLock::~RegionsLock() {
  locked.store(false, std::memory_order_release);  // REGIONS release: the table
  errno = error_;
}

Region map_region(const RegionsLock& /*held*/, int fd, std::size_t bytes, std::uintptr_t owner, Revoke revoke) noexcept {
  if (bytes == 0 || maps_no_more || address_space_is_limited()) return {};
  void* const begin = map_protected(fd, bytes);
  if (begin == nullptr) return {};
  const std::uint32_t number = take_slot(revoke);
  Slot& slot = slots[number];
  slot.begin = begin;
  slot.bytes = bytes;
  slot.owner = owner;
  slot.used.store(~std::uint64_t{0}, std::memory_order_relaxed);
  return {.number = number, .bytes = {static_cast<const std::byte*>(begin), bytes}};
}

void unmap_region(const RegionsLock& /*held*/, std::uint32_t region, std::uintptr_t owner) noexcept {
  if (region >= kMostRegions) return;
  Slot& slot = slots[region];
  if (slot.begin != nullptr && slot.owner == owner) unmap(slot);
}

void touch_region(std::uint32_t region, std::uint64_t now) noexcept {
  if (region < kMostRegions) slots[region].used.store(now, std::memory_order_relaxed);
}

void map_no_more() noexcept {
  const RegionsLock here;
  maps_no_more = true;
}

void forget_regions_after_fork() noexcept {
  for (std::uint32_t i = 0; i < slots_used; i++) slots[i].begin = nullptr;
  // UNPROTECTED acquire: its length
  if (void* const place = unprotected.exchange(nullptr, std::memory_order_acquire); place != nullptr) {
    ::munmap(place, unprotected_bytes);
  }
  locked.store(false, std::memory_order_relaxed);
}

}  // namespace wherry::file::mapped
