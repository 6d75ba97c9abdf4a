// SPDX-License-Identifier: Apache-2.0
//
// Memory for large messages. malloc would take each of them page by page from the kernel, and write its own headers
// into one page. A message without content then costs the sender a fault for every 4 KiB: half of its CPU time. Here
// messages lie side by side in regions of 4 MiB that contain nothing else. The kernel maps such a region with two
// faults: to huge pages, or to the one huge page of zeros as long as it is only read. Freed memory is reused while the
// caches still hold it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "wherry_message.hpp"

namespace zmq {

/// Equal slots in regions that are mapped for them; the lowest free slot is used first. From any thread.
///
/// Memory overhead of regions that hold messages. A slot is up to an eighth larger than its message, and beyond 4 MiB
/// up to two thirds. As much again and 16 MiB may lie in free slots beside them; and 2 MiB for each size of slot, in
/// the huge page of which only the first part was ever used.
///
/// Empty regions are kept, 8 MiB at most, and none while there are no users (one while the first is expected). During a
/// watch (begin_watch) the limit is what messages used a moment ago, up to most_to_keep_.
class wherry_memory_t {
 public:
  struct piece_t {
    void* data = nullptr;
    void* region = nullptr;
  };

  static constexpr std::size_t smallest = wherry_large;
  static constexpr std::size_t region_bytes = std::size_t{4} << 20;
  static constexpr std::size_t least_kept = std::size_t{8} << 20;
  static constexpr std::size_t most_kept = std::size_t{256} << 20;
  static constexpr std::size_t slack = std::size_t{16} << 20;

  /// @param most  bytes that are kept at most; at least least_kept
  explicit wherry_memory_t(std::size_t most = most_kept);
  /// All pieces must have been given back.
  ~wherry_memory_t() { release(0); }
  wherry_memory_t(const wherry_memory_t&) = delete;
  wherry_memory_t& operator=(const wherry_memory_t&) = delete;

  /// Announces a user: from now on take() returns memory.
  void expect_user();
  void add_user();
  void remove_user();

  /// Returns an empty piece if the caller should use malloc: the piece is small, there are no users, or the system has
  /// no memory.
  [[nodiscard]] piece_t take(std::size_t bytes);
  /// Gives back a piece of take(), even after the last user has gone.
  void give(void* data, void* region);

  /// Until end_watch(), release_unused() is called about once a second.
  void begin_watch();
  void end_watch();
  /// Gives memory back to the system: what messages have not needed since the last look but one, and everything that is
  /// kept if nothing was taken since the last look. Returns true in the latter case. Calls within half a second of a
  /// look count as that look.
  bool release_unused(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

  [[nodiscard]] std::size_t mapped_bytes();

  /// For fork: the child's memory is then as usable as the parent's.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void unlock_in_child();

 private:
  struct region_t {
    std::byte* begin = nullptr;
    std::size_t capacity = 0;
    std::size_t slot_bytes = 0;
    std::uint64_t all_slots = 0;
    std::uint64_t free_slots = 0;
    std::uint64_t warm_slots = 0;  ///< free slots that may have pages
    region_t* previous = nullptr;
    region_t* next = nullptr;
  };
  /// Eight slot sizes for each power of two, from 128 KiB to 4 MiB.
  static constexpr std::size_t kSizes = 41;

  static region_t* map(std::size_t capacity);
  static void unmap(region_t* region);
  static void insert(region_t*& list, region_t* region);
  static void remove(region_t*& list, region_t* region);
  static std::size_t slot_for(std::size_t bytes);
  region_t*& with_space(std::size_t slot_bytes);
  region_t* take_empty(std::size_t capacity);
  void divide(region_t* region, std::size_t slot_bytes);
  region_t* empty_region(std::unique_lock<std::mutex>& guard, std::size_t capacity);
  void cool();
  [[nodiscard]] std::size_t most_to_keep() const;
  void release(std::size_t most);

  std::mutex mutex_;
  std::array<region_t*, kSizes> with_space_{};  ///< regions with taken and with free slots, by size
  region_t* empty_ = nullptr;                   ///< regions without a taken slot, the last emptied first
  std::size_t empty_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
  std::size_t taken_bytes_ = 0;
  std::size_t warm_bytes_ = 0;  ///< warm slots in regions that hold messages
  std::size_t most_taken_ = 0;  ///< most since the last look
  std::size_t most_taken_before_ = 0;
  const std::size_t most_to_keep_;
  std::size_t users_ = 0;
  std::size_t watches_ = 0;
  bool expected_ = false;
  bool idle_ = true;        ///< nothing was taken since the last look
  bool found_idle_ = true;  ///< `idle_` as the last look found it
  std::chrono::steady_clock::time_point last_look_;
};

/// The memory of this process. Never destroyed: a message may outlive main().
wherry_memory_t& wherry_message_memory();

/// A user of the process's memory.
class wherry_memory_user_t {
 public:
  wherry_memory_user_t() { wherry_message_memory().add_user(); }
  ~wherry_memory_user_t() { wherry_message_memory().remove_user(); }
  wherry_memory_user_t(const wherry_memory_user_t&) = delete;
  wherry_memory_user_t& operator=(const wherry_memory_user_t&) = delete;
};

}  // namespace zmq
