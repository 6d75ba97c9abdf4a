// SPDX-License-Identifier: Apache-2.0
//
// Reads a file in place: from its pages in the kernel's page cache, mapped through the program's own descriptor.
//
// A read is served here only if it ends before the page that contains the end of the file. The size comes from an fstat
// that is at most kSizeCounts old, and newer than the last truncation by a process that counts truncations
// (truncations.hpp). The kernel serves all other reads.
//
// On a mount of `wherry mount` whose data does not pass through, the page cache may be older than the host's file.
// There a read is served only while the file is delegated to the mount (layout/delegation_page.hpp).
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
#include "layout/delegation_page.hpp"

namespace wherry::file::mapped {

/// How long a known size is valid, in ns, as stated in docs/files.md.
inline constexpr std::uint64_t kSizeCounts = 10'000'000;

/// A clock in ns that needs no system call. It lags by at most one tick of the kernel.
std::uint64_t coarse_clock() noexcept;

/// The type (statfs) of the file system whose page cache has the data of a file. For a Wherry mount with passthrough,
/// that is the file system below it, without passthrough kDelegatingMount. For a directory, that of its files. 0: none,
/// or unknown. Changes errno.
long file_system_of_data(int fd) noexcept;
long file_system_of_data(const char* directory) noexcept;

/// Whether all files of this type of file system may be read in place: ext2, ext3, ext4, XFS, btrfs and tmpfs. On
/// others a read may have to ask a server.
bool can_map_file_system(long type) noexcept;

/// The type of a Wherry mount without passthrough. Its files may be read in place while they are delegated.
inline constexpr long kDelegatingMount = 0x65735546;  // FUSE_SUPER_MAGIC

/// How many bytes to map of a file of this size. Leaves room after the end, so that a growing file is not mapped again
/// at once. The room costs only addresses.
std::uint64_t reach_for(std::uint64_t size) noexcept;

/// Whether this process has ever mapped a file.
bool any_was_mapped() noexcept;

/// Whether a file may be read in place: a regular file on such a file system, open for reading, without O_DIRECT and
/// O_PATH. On a delegating mount it must not be open for writing, which excludes a delegation. Keeps errno.
bool can_be_mapped(int fd, const struct ::stat& status) noexcept;

/// The mapping of one descriptor's file, and its known size. Several threads may read at the same time. map() and
/// refresh() need the owner's lock. Any thread may call drop(), also during map(): afterwards the file is mapped with
/// all fields set, or not at all. The owner must discard a copy that was made during drop(): it raises a generation
/// before it calls drop(), and compares the generation after each copy.
class MappedFile {
 public:
  enum class Look : unsigned char {
    usable,
    must_map_again,  ///< the file is longer than the mapping, or was not delegated for long: drop it first
    other_file,      ///< the descriptor refers to another file: drop it
  };

  /// False: nothing is mapped; the kernel must read. On a delegating mount it blocks as the mount does.
  bool map(int fd, const struct ::stat& status, std::uintptr_t owner, Revoke revoke) noexcept;
  /// Whether the last map() failed because the mount refuses this file for good.
  [[nodiscard]] bool is_refused() const { return is_refused_.load(std::memory_order_relaxed); }
  /// Forgets the mapping and unmaps it.
  void drop(std::uintptr_t owner) noexcept;
  /// As drop(), if it is unmapped already: for a Revoke, during which the table is locked, or in a forked child.
  void forget() noexcept;
  [[nodiscard]] bool is_mapped() const { return begin_.load(std::memory_order_relaxed) != nullptr; }

  [[nodiscard]] bool has_region(std::uint32_t region) const {
    return region_.load(std::memory_order_relaxed) == region + 1;
  }

  /// Whether the known size is still valid.
  [[nodiscard]] bool is_fresh() const noexcept {
    std::uint32_t count = 0;
    const TruncationCounter* const counter = counter_.load(std::memory_order_relaxed);
    // SIZE acquire: the size
    return counter != nullptr && coarse_clock() < deadline_.load(std::memory_order_acquire) &&
           read_counter(*counter, count) && count == count_.load(std::memory_order_acquire);  // SIZE acquire: the size
  }
  /// Until when the size is valid, by coarse_clock().
  [[nodiscard]] std::uint64_t deadline() const { return deadline_.load(std::memory_order_relaxed); }
  struct Truncations {
    const TruncationCounter* counter;  ///< null: nothing is known
    std::uint32_t count;
  };
  /// The count of truncations, to be read before refresh(). Makes a guarded copy, so signals must not be blocked.
  [[nodiscard]] Truncations truncations() const noexcept;
  /// Asks the kernel for the size. Keeps errno.
  Look refresh(int fd, Truncations before) noexcept;

  /// Whether these bytes lie before the page that contains the end of the file.
  [[nodiscard]] bool has(std::uint64_t offset, std::size_t bytes) const noexcept {
    const std::uint64_t readable = readable_.load(std::memory_order_relaxed);
    return offset <= readable && bytes <= readable - offset;
  }
  /// Copies bytes; requires is_fresh() and has(). False: the kernel must read; part of `to` may be written.
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
  /// Identifies the mapping among all mappings that this process has made.
  [[nodiscard]] std::uint64_t serial() const { return serial_.load(std::memory_order_relaxed); }
  /// Number of bytes before the page that contains the end of the file.
  [[nodiscard]] std::uint64_t readable() const { return readable_.load(std::memory_order_relaxed); }
  /// Whether it is on a delegating mount. Then each byte that is not in the page cache comes through the mount.
  [[nodiscard]] bool needs_delegation() const { return delegation_.load(std::memory_order_relaxed) != nullptr; }
  /// Whether the page with this byte is in the page cache. Keeps errno.
  [[nodiscard]] bool is_resident(std::uint64_t offset) const noexcept;

 private:
  bool map_here(int fd, const struct ::stat& status, std::uintptr_t owner, Revoke revoke, bool may_be_sparse,
                int delegation) noexcept;
  void drop_locked(const RegionsLock& held, std::uintptr_t owner) noexcept;
  [[nodiscard]] std::uint64_t delegated_until() const noexcept;

  std::atomic<const std::byte*> begin_{nullptr};
  std::atomic<std::uint64_t> reach_{0};     // bytes mapped
  std::atomic<std::uint64_t> readable_{0};  // bytes before the page that contains the end of the file
  std::atomic<std::uint64_t> deadline_{0};
  std::atomic<const TruncationCounter*> counter_{nullptr};
  std::atomic<std::uint32_t> count_{0};   // of truncations or recalls, read before the size
  std::atomic<std::uint32_t> region_{0};  // region number + 1, so that an object without one is all zeros; 0: none
  std::atomic<std::uint64_t> device_{0};
  std::atomic<std::uint64_t> inode_{0};
  std::atomic<std::uint64_t> serial_{0};
  std::atomic<const layout::DelegationPage*> delegation_{nullptr};  // of a file on a delegating mount
  std::atomic<unsigned> not_delegated_{0};                          // calls of refresh() since the file was delegated
  std::atomic<bool> is_refused_{false};
  std::atomic<bool> may_be_sparse_{false};  // a fault in a hole would allocate a page
};

}  // namespace wherry::file::mapped
