// SPDX-License-Identifier: Apache-2.0
#include "wherry_memory.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/ring_default.hpp"

namespace zmq {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Shortest time between looks: many connections look after the same memory.
constexpr std::chrono::milliseconds kBetweenLooks{500};

/// Part of the machine's memory, or of its control group's, that is kept at most.
constexpr std::uint64_t kPartKept = 16;

/// More bytes than any machine has: sums of such sizes do not overflow.
constexpr std::size_t kLargest = std::size_t{1} << 46;

std::size_t up_to(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

std::byte* map_pages(std::size_t bytes) {
  void* const place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return place == MAP_FAILED ? nullptr : static_cast<std::byte*>(place);
}

std::size_t beyond_boundary(const std::byte* place) { return reinterpret_cast<std::uintptr_t>(place) % kHugePage; }

/// Kernels from 6.7 on align large mappings to huge pages. With others the ends are cut off.
std::byte* map_aligned(std::size_t bytes) {
  std::byte* const place = map_pages(bytes);
  if (place == nullptr || beyond_boundary(place) == 0) return place;
  ::munmap(place, bytes);
  std::byte* const larger = map_pages(bytes + kHugePage);
  if (larger == nullptr) return nullptr;
  const std::size_t before = (kHugePage - beyond_boundary(larger)) % kHugePage;
  if (before != 0) ::munmap(larger, before);
  ::munmap(larger + before + bytes, kHugePage - before);
  return larger + before;
}

}  // namespace

wherry_memory_t::wherry_memory_t(std::size_t most) : most_to_keep_(std::clamp(most, least_kept, most_kept)) {}

void wherry_memory_t::expect_user() {
  const std::scoped_lock guard(mutex_);
  expected_ = true;
}

void wherry_memory_t::add_user() {
  const std::scoped_lock guard(mutex_);
  ++users_;
}

void wherry_memory_t::remove_user() {
  {
    const std::scoped_lock guard(mutex_);
    if (--users_ != 0) return;
    expected_ = false;
  }
  release(0);
}

wherry_memory_t::piece_t wherry_memory_t::take(std::size_t bytes) {
  if (bytes < smallest || bytes >= kLargest) return {};
  std::size_t slot = slot_for(bytes);
  std::unique_lock guard(mutex_);
  if (users_ == 0 && !expected_) return {};
  idle_ = false;
  region_t* region = slot <= region_bytes ? with_space(slot) : nullptr;
  if (region == nullptr) {
    region = empty_region(guard, std::max(slot, region_bytes));
    if (region == nullptr) return {};
    divide(region, slot);
    slot = region->slot_bytes;
  }
  const int number = std::countr_zero(region->warm_slots != 0 ? region->warm_slots : region->free_slots);
  const std::uint64_t mine = std::uint64_t{1} << number;
  if ((region->warm_slots & mine) != 0) warm_bytes_ -= slot;
  region->warm_slots &= ~mine;
  region->free_slots &= ~mine;
  if (region->free_slots == 0 && slot <= region_bytes) remove(with_space(slot), region);
  taken_bytes_ += slot;
  most_taken_ = std::max(most_taken_, taken_bytes_);
  return {region->begin + static_cast<std::size_t>(number) * slot, region};
}

void wherry_memory_t::give(void* data, void* place) {
  auto* const region = static_cast<region_t*>(place);
  const std::size_t slot = region->slot_bytes;
  const auto number = static_cast<std::size_t>(static_cast<std::byte*>(data) - region->begin) / slot;
  std::unique_lock guard(mutex_);
  if (region->free_slots == 0 && slot <= region_bytes) insert(with_space(slot), region);
  region->free_slots |= std::uint64_t{1} << number;
  region->warm_slots |= std::uint64_t{1} << number;
  taken_bytes_ -= slot;
  warm_bytes_ += slot;
  if (region->free_slots != region->all_slots) {
    if (warm_bytes_ > taken_bytes_ + slack) cool();
    return;
  }
  if (slot <= region_bytes) remove(with_space(slot), region);
  warm_bytes_ -= static_cast<std::size_t>(std::popcount(region->warm_slots)) * slot;
  if (empty_bytes_ + region->capacity <= most_to_keep()) {
    empty_bytes_ += region->capacity;
    insert(empty_, region);
    return;
  }
  mapped_bytes_ -= region->capacity;
  guard.unlock();
  unmap(region);
}

void wherry_memory_t::begin_watch() {
  const std::scoped_lock guard(mutex_);
  ++watches_;
}

void wherry_memory_t::end_watch() {
  std::size_t most = 0;
  {
    const std::scoped_lock guard(mutex_);
    --watches_;
    most = most_to_keep();
  }
  release(most);
}

bool wherry_memory_t::release_unused(std::chrono::steady_clock::time_point now) {
  std::size_t most = 0;
  bool idle = false;
  {
    const std::scoped_lock guard(mutex_);
    if (now - last_look_ < kBetweenLooks) return found_idle_ && idle_;
    last_look_ = now;
    most_taken_before_ = std::exchange(most_taken_, taken_bytes_);
    idle = found_idle_ = std::exchange(idle_, true);
    if (!idle) most = most_to_keep();
  }
  release(most);
  return idle;
}

std::size_t wherry_memory_t::mapped_bytes() {
  const std::scoped_lock guard(mutex_);
  return mapped_bytes_;
}

wherry_memory_t::region_t* wherry_memory_t::map(std::size_t capacity) {
  auto* const region = new (std::nothrow) region_t;
  if (region == nullptr) return nullptr;
  region->begin = map_aligned(capacity);
  if (region->begin == nullptr) {
    delete region;
    return nullptr;
  }
  region->capacity = capacity;
  (void)::madvise(region->begin, capacity, MADV_HUGEPAGE);
  return region;
}

void wherry_memory_t::unmap(region_t* region) {
  (void)::munmap(region->begin, region->capacity);
  delete region;
}

void wherry_memory_t::insert(region_t*& list, region_t* region) {
  region->previous = nullptr;
  region->next = list;
  if (list != nullptr) list->previous = region;
  list = region;
}

void wherry_memory_t::remove(region_t*& list, region_t* region) {
  (region->previous != nullptr ? region->previous->next : list) = region->next;
  if (region->next != nullptr) region->next->previous = region->previous;
}

/// Returns the slot size, at most an eighth more than `bytes`. A larger message than a region has one for itself, of
/// whole huge pages.
std::size_t wherry_memory_t::slot_for(std::size_t bytes) {
  if (bytes > region_bytes) return up_to(bytes, kHugePage);
  return up_to(bytes, std::max(kPage, std::bit_floor(bytes) / 8));
}

wherry_memory_t::region_t*& wherry_memory_t::with_space(std::size_t slot_bytes) {
  const std::size_t power = std::bit_floor(slot_bytes);
  const auto octave = static_cast<std::size_t>(std::countr_zero(power) - std::countr_zero(smallest));
  return with_space_.at(8 * octave + (slot_bytes - power) / (power / 8));
}

/// A region for one message may be up to a quarter larger than needed.
wherry_memory_t::region_t* wherry_memory_t::take_empty(std::size_t capacity) {
  const auto fits = [=](std::size_t other) {
    return capacity == region_bytes ? other == capacity : capacity <= other && other <= capacity + capacity / 4;
  };
  region_t* region = empty_;
  while (region != nullptr && !fits(region->capacity)) region = region->next;
  if (region == nullptr) return nullptr;
  remove(empty_, region);
  empty_bytes_ -= region->capacity;
  return region;
}

/// Returns a kept region, or a new one: the lock is released meanwhile. Returns null if there is no memory even without
/// the kept regions.
wherry_memory_t::region_t* wherry_memory_t::empty_region(std::unique_lock<std::mutex>& guard, std::size_t capacity) {
  region_t* region = take_empty(capacity);
  if (region != nullptr) return region;
  guard.unlock();
  region = map(capacity);
  if (region == nullptr) {
    release(0);
    region = map(capacity);
  }
  guard.lock();
  if (region != nullptr) mapped_bytes_ += capacity;
  return region;
}

/// Divides an empty region into slots of this size. Slots of a region that was used before are warm.
void wherry_memory_t::divide(region_t* region, std::size_t slot_bytes) {
  const bool is_new = region->slot_bytes == 0;
  if (slot_bytes > region_bytes) slot_bytes = region->capacity;
  const std::size_t slots = region->capacity / slot_bytes;
  region->slot_bytes = slot_bytes;
  region->all_slots = region->free_slots = (std::uint64_t{1} << slots) - 1;
  region->warm_slots = is_new ? 0 : region->all_slots;
  if (!is_new) warm_bytes_ += slots * slot_bytes;
  if (slot_bytes <= region_bytes) insert(with_space(slot_bytes), region);
}

/// A few messages may stay in many regions: gives surplus pages between them back to the system.
void wherry_memory_t::cool() {
  for (region_t* region : with_space_) {
    for (; region != nullptr; region = region->next) {
      for (; region->warm_slots != 0; region->warm_slots &= region->warm_slots - 1) {
        if (warm_bytes_ <= taken_bytes_) return;
        const auto number = static_cast<std::size_t>(std::countr_zero(region->warm_slots));
        (void)::madvise(region->begin + number * region->slot_bytes, region->slot_bytes, MADV_DONTNEED);
        warm_bytes_ -= region->slot_bytes;
      }
    }
  }
}

/// Messages come and go: memory that they used a moment ago will be used again.
std::size_t wherry_memory_t::most_to_keep() const {
  if (users_ == 0) return expected_ ? region_bytes : 0;
  if (watches_ == 0) return least_kept;
  const std::size_t most = std::max({most_taken_, most_taken_before_, taken_bytes_});
  return std::clamp(most - taken_bytes_, least_kept, most_to_keep_);
}

/// The timers that release unused memory are the parent's.
void wherry_memory_t::unlock_in_child() {
  watches_ = 0;
  unlock();
}

void wherry_memory_t::release(std::size_t most) {
  region_t* region = nullptr;
  {
    const std::scoped_lock guard(mutex_);
    while (empty_ != nullptr && empty_bytes_ > most) {
      region_t* const next = empty_;
      remove(empty_, next);
      empty_bytes_ -= next->capacity;
      mapped_bytes_ -= next->capacity;
      next->next = std::exchange(region, next);
    }
  }
  while (region != nullptr) unmap(std::exchange(region, region->next));
}

wherry_memory_t& wherry_message_memory() {
  // this_machine() reads files. Not within the guard of the static: a child that is forked meanwhile would wait for it
  // for ever.
  const std::uint64_t bytes = wherry::this_machine().memory;
  static wherry_memory_t& memory = *[bytes] {
    (void)::pthread_atfork([] { wherry_message_memory().lock(); }, [] { wherry_message_memory().unlock(); },
                           [] { wherry_message_memory().unlock_in_child(); });
    return new wherry_memory_t(bytes == 0 ? wherry_memory_t::most_kept : bytes / kPartKept);
  }();
  return memory;
}

}  // namespace zmq
