// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/regions.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

namespace wherry::file::mapped {
namespace {

std::uintptr_t address_of(const std::byte* place) { return reinterpret_cast<std::uintptr_t>(place); }

/// An address range that is read without the lock.
struct Addresses {
  std::atomic<std::byte*> begin;  // null: none
  std::atomic<std::size_t> bytes;

  [[nodiscard]] bool overlap(const std::byte* other, std::size_t other_bytes) const {
    const std::uintptr_t at = address_of(begin.load(std::memory_order_relaxed));
    const std::uintptr_t place = address_of(other);
    return at != 0 && (at < place ? place - at < bytes.load(std::memory_order_relaxed) : at - place < other_bytes);
  }
};

struct Slot : Addresses {  // none: free
  std::uintptr_t owner;
  std::atomic<std::uint64_t> used;

  [[nodiscard]] bool is_free() const { return begin.load(std::memory_order_relaxed) == nullptr; }
};

// Zero pages take no memory until they are written.
constinit std::array<Slot, kMostRegions> slots{};
// Groups of adjacent slots, each with the range of all addresses that its slots have had. The kernel maps files side by
// side, so checking the groups is usually enough.
constexpr std::size_t kGroup = 64;
/// Bytes that are mapped of other memory.
constexpr std::size_t kOtherBytes = 4096;
constinit std::array<Addresses, kMostRegions / kGroup> groups{};
constinit std::atomic<std::uint32_t> slots_used{0};  // slots from here on were never used
constinit std::atomic<bool> locked{false};
constinit bool maps_no_more = false;
constinit std::atomic<bool> any_mapped{false};
// Whether this thread holds the lock: its own calls that map and unmap may re-enter here through a hook.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool holds_lock = false;
// A mapping that is not yet excluded from fork (MADV_DONTFORK). Null: none.
constinit std::atomic<void*> unprotected{nullptr};
constinit std::size_t unprotected_bytes = 0;

std::span<Slot> used_slots() { return std::span(slots).first(slots_used.load(std::memory_order_relaxed)); }

void unmap(Slot& slot) {
  std::byte* const begin = slot.begin.exchange(nullptr, std::memory_order_relaxed);
  ::munmap(begin, slot.bytes.load(std::memory_order_relaxed));
}

/// Calls `visit` with each slot whose mapping overlaps the range, until it returns false.
template <typename Visit>
void visit_overlapping(const std::byte* place, std::size_t bytes, Visit visit) {
  const std::span<Slot> used = used_slots();
  for (std::size_t first = 0; first < used.size(); first += kGroup) {
    if (!groups[first / kGroup].overlap(place, bytes)) continue;
    for (Slot& slot : used.subspan(first, std::min(kGroup, used.size() - first))) {
      if (slot.overlap(place, bytes) && !visit(slot)) return;
    }
  }
}

/// Requires the lock.
void give_up_overlapping(const std::byte* place, std::size_t bytes, Revoke revoke) {
  visit_overlapping(place, bytes, [&](Slot& slot) {
    revoke(slot.owner, static_cast<std::uint32_t>(&slot - slots.data()));
    unmap(slot);
    return true;
  });
}

/// Requires the lock; call it before the slot gets the addresses. `bytes` is stored first because the group may grow
/// upwards: then a check without the lock misses no existing mapping.
void add_to_group(std::uint32_t number, std::byte* begin, std::size_t bytes) {
  Addresses& group = groups[number / kGroup];
  std::byte* const before = group.begin.load(std::memory_order_relaxed);
  std::byte* const lowest = before == nullptr ? begin : std::min(before, begin);
  const std::byte* const end = before == nullptr ? begin : before + group.bytes.load(std::memory_order_relaxed);
  group.bytes.store(static_cast<std::size_t>(std::max<const std::byte*>(end, begin + bytes) - lowest),
                    std::memory_order_relaxed);
  group.begin.store(lowest, std::memory_order_relaxed);
}

/// Returns a free slot. If there is none, evicts the least recently used one.
std::uint32_t take_slot(Revoke revoke) {
  std::uint32_t oldest = 0;
  const std::uint32_t count = slots_used.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; i++) {
    if (slots[i].is_free()) return i;
    const std::uint64_t used = slots[i].used.load(std::memory_order_relaxed);
    if (used < slots[oldest].used.load(std::memory_order_relaxed)) oldest = i;
  }
  if (count < kMostRegions) {
    slots_used.store(count + 1, std::memory_order_relaxed);
    return count;
  }
  revoke(slots[oldest].owner, oldest);
  unmap(slots[oldest]);
  return oldest;
}

/// Maps the file over reserved addresses, so that a child forked meanwhile knows what to unmap. The mapping is private,
/// since a shared mapping of a writable descriptor counts as a writer. Nothing writes to it. `other` is mapped behind
/// it, shared: other processes write to it.
void* map_protected(int fd, std::size_t bytes, int other) {
  const std::size_t all = bytes + (other < 0 ? 0 : kOtherBytes);
  void* const place = ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  unprotected_bytes = all;
  unprotected.store(place, std::memory_order_release);  // UNPROTECTED release: its length
  void* const behind = static_cast<std::byte*>(place) + bytes;
  const bool mapped =
      ::mmap(place, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == place &&
      (other < 0 || ::mmap(behind, kOtherBytes, PROT_READ, MAP_SHARED | MAP_FIXED, other, 0) == behind) &&
      ::madvise(place, all, MADV_DONTFORK) == 0;
  unprotected.store(nullptr, std::memory_order_relaxed);
  if (mapped) return place;
  ::munmap(place, all);
  return nullptr;
}

bool address_space_is_limited() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

RegionsLock::RegionsLock() noexcept : error_(errno) {
  while (locked.exchange(true, std::memory_order_acquire)) sched_yield();  // REGIONS acquire: the table
  holds_lock = true;
}

RegionsLock::~RegionsLock() {
  holds_lock = false;
  locked.store(false, std::memory_order_release);  // REGIONS release: the table
  errno = error_;
}

Region map_region(const RegionsLock& /*held*/, int fd, std::size_t bytes, std::uintptr_t owner, Revoke revoke,
                  int other) noexcept {
  if (bytes == 0 || maps_no_more || address_space_is_limited()) return {};
  any_mapped.store(true, std::memory_order_relaxed);
  void* const begin = map_protected(fd, bytes, other);
  if (begin == nullptr) return {};
  const std::size_t all = bytes + (other < 0 ? 0 : kOtherBytes);
  const std::uint32_t number = take_slot(revoke);
  Slot& slot = slots[number];
  add_to_group(number, static_cast<std::byte*>(begin), all);
  slot.bytes.store(all, std::memory_order_relaxed);
  slot.begin.store(static_cast<std::byte*>(begin), std::memory_order_relaxed);
  slot.owner = owner;
  slot.used.store(~std::uint64_t{0}, std::memory_order_relaxed);
  const std::span file(static_cast<const std::byte*>(begin), bytes);
  return {.number = number, .bytes = file, .page = other < 0 ? nullptr : file.data() + bytes};
}

void unmap_region(const RegionsLock& /*held*/, std::uint32_t region, std::uintptr_t owner) noexcept {
  if (region >= kMostRegions) return;
  Slot& slot = slots[region];
  if (!slot.is_free() && slot.owner == owner) unmap(slot);
}

void give_up_regions(const void* begin, std::size_t bytes, Revoke revoke) noexcept {
  const auto* const place = static_cast<const std::byte*>(begin);
  if (holds_lock) return;
  // Checks without the lock: usually there is no region here.
  bool any = false;
  visit_overlapping(place, bytes, [&](const Slot&) {
    any = true;
    return false;
  });
  if (!any) return;
  const RegionsLock here;
  give_up_overlapping(place, bytes, revoke);
}

PlaceTaken::PlaceTaken(const void* begin, std::size_t bytes, Revoke revoke) noexcept {
  if (holds_lock || !any_mapped.load(std::memory_order_relaxed)) return;
  lock_.emplace();
  give_up_overlapping(static_cast<const std::byte*>(begin), bytes, revoke);
}

PlaceTaken::~PlaceTaken() {
  const int error = errno;
  lock_.reset();
  errno = error;
}

void touch_region(std::uint32_t region, std::uint64_t now) noexcept {
  if (region < kMostRegions) slots[region].used.store(now, std::memory_order_relaxed);
}

void map_no_more() noexcept {
  const RegionsLock here;
  maps_no_more = true;
}

void forget_regions_after_fork() noexcept {
  for (Slot& slot : used_slots()) slot.begin.store(nullptr, std::memory_order_relaxed);
  // UNPROTECTED acquire: its length
  if (void* const place = unprotected.exchange(nullptr, std::memory_order_acquire); place != nullptr) {
    ::munmap(place, unprotected_bytes);
  }
  locked.store(false, std::memory_order_relaxed);
}

}  // namespace wherry::file::mapped
