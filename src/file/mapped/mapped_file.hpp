// SPDX-License-Identifier: Apache-2.0
//
// A file read in place: its pages in the kernel's page cache, mapped through the program's own descriptor.
//
// A read is served here if it ends before the page in which the file ends. The size is known from an fstat that is at
// most kSizeCounts old, and newer than the last truncation by a process that counts it (truncations.hpp). All other
// reads are the kernel's.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "file/mapped/copies_under_way.hpp"
#include "file/mapped/fault_signals.hpp"
#include "file/mapped/guarded_copy.hpp"
#include "file/mapped/regions.hpp"
#include "file/mapped/truncations.hpp"

namespace wherry::file::mapped {

/// ns. How long a size counts, as stated in docs/files.md.
inline constexpr std::uint64_t kSizeCounts = 10'000'000;

/// ns of a clock that costs no system call and is late by a tick of the kernel at most.
std::uint64_t coarse_clock() noexcept;

/// The type of the file system (statfs) in whose page cache the data of a file is: that below a mount of Wherry's which
/// passes data through. Of a directory, that of its files. 0: none, or not known. Changes errno.
long file_system_of_data(int fd) noexcept;
long file_system_of_data(const char* directory) noexcept;

/// Whether files of a file system of this type may be read in place: ext2, ext3, ext4, XFS, btrfs and tmpfs. A read of
/// another one may have to ask a server.
bool can_map_file_system(long type) noexcept;

/// How much to map of a file of this size: with room behind the end, so that one that grows need not be mapped again at
/// once. It takes addresses only.
std::uint64_t reach_for(std::uint64_t size) noexcept;

/// Whether this process has mapped a file yet.
bool any_was_mapped() noexcept;

/// Whether a file may be read in place: a regular one of such a file system, opened without O_DIRECT and O_PATH, to be
/// read. Keeps errno.
bool can_be_mapped(int fd, const struct ::stat& status) noexcept;

/// What is known of the file of one descriptor. Several threads may read at the same time; one thread at a time, the
/// holder of a lock, calls map() and refresh(). Any thread may call drop(), also while another one maps: the file is
/// mapped and known afterwards, or neither. A copy that was made while drop() ran must not count: the owner compares a
/// generation after each copy, which it has raised before it calls drop().
class MappedFile {
 public:
  enum class Look : unsigned char {
    usable,
    outgrown,    ///< the file is longer than the mapping: to be dropped and mapped again
    other_file,  ///< the descriptor has another file: to be dropped
  };

  /// False: nothing is mapped, the kernel must read.
  bool map(int fd, const struct ::stat& status, std::uintptr_t owner, Revoke revoke) noexcept;
  /// Forgets the mapping, and unmaps it.
  void drop(std::uintptr_t owner) noexcept;
  /// The same where it is unmapped already: of a Revoke, which has the table locked, or in a forked child.
  void forget() noexcept;
  [[nodiscard]] bool is_mapped() const { return begin_.load(std::memory_order_relaxed) != nullptr; }

  [[nodiscard]] bool has_region(std::uint32_t region) const {
    return region_.load(std::memory_order_relaxed) == region + 1;
  }

  /// Whether what is known of the size still counts.
  [[nodiscard]] bool is_fresh() const noexcept {
    std::uint32_t count = 0;
    const TruncationCounter* const counter = counter_.load(std::memory_order_relaxed);
    // SIZE acquire: the size
    return counter != nullptr && coarse_clock() < deadline_.load(std::memory_order_acquire) &&
           read_counter(*counter, count) && count == count_.load(std::memory_order_acquire);  // SIZE acquire: the size
  }
  /// Until when the size counts, of coarse_clock().
  [[nodiscard]] std::uint64_t deadline() const { return deadline_.load(std::memory_order_relaxed); }
  struct Truncations {
    const TruncationCounter* counter;  ///< null: nothing is known
    std::uint32_t count;
  };
  /// How many were counted before refresh(): a guarded copy, so not while signals are blocked.
  [[nodiscard]] Truncations truncations() const noexcept;
  /// Asks the kernel for the size. Keeps errno.
  Look refresh(int fd, Truncations before) noexcept;

  /// Whether these bytes lie before the page in which the file ends.
  [[nodiscard]] bool has(std::uint64_t offset, std::size_t bytes) const noexcept {
    const std::uint64_t readable = readable_.load(std::memory_order_relaxed);
    return offset <= readable && bytes <= readable - offset;
  }
  /// Copies them; requires is_fresh() and has(). False: the kernel must read, `to` may be written in part.
  bool copy(void* to, std::uint64_t offset, std::size_t bytes) noexcept {
    const std::byte* const begin = begin_.load(std::memory_order_acquire);  // MAPPED acquire: the fields
    if (begin == nullptr || !has(offset, bytes)) return false;
    const CopyUnderWay here;
    if (!here || !takes_faults()) return false;
    if (copy_or_fault(to, begin + offset, bytes)) [[likely]]
      return true;
    deadline_.store(0, std::memory_order_relaxed);
    return false;
  }
  /// Of the mapping: another one of this process has another number.
  [[nodiscard]] std::uint64_t serial() const { return serial_.load(std::memory_order_relaxed); }
  /// Bytes before the page in which the file ends.
  [[nodiscard]] std::uint64_t readable() const { return readable_.load(std::memory_order_relaxed); }
  /// Whether the page with this byte is in the page cache. Keeps errno.
  [[nodiscard]] bool is_resident(std::uint64_t offset) const noexcept;

 private:
  void drop_locked(const RegionsLock& held, std::uintptr_t owner) noexcept;

  std::atomic<const std::byte*> begin_{nullptr};
  std::atomic<std::uint64_t> reach_{0};     // bytes mapped
  std::atomic<std::uint64_t> readable_{0};  // bytes before the page in which the file ends
  std::atomic<std::uint64_t> deadline_{0};
  std::atomic<const TruncationCounter*> counter_{nullptr};
  std::atomic<std::uint32_t> count_{0};   // of truncations, before the size was asked for
  std::atomic<std::uint32_t> region_{0};  // its number and 1, so that an object without one is all zeros; 0: none
  std::atomic<std::uint64_t> device_{0};
  std::atomic<std::uint64_t> inode_{0};
  std::atomic<std::uint64_t> serial_{0};
  std::atomic<bool> may_be_sparse_{false};  // a fault in a hole would allocate a page
};

}  // namespace wherry::file::mapped
