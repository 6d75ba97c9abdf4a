// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/mapped_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "file/mapped/delegation_offer.hpp"
#include "layout/passthrough_attribute.hpp"

namespace wherry::file::mapped {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostLateness = 8'000'000;  // ns
constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;
constexpr std::uint64_t kAlways = ~std::uint64_t{0};
/// Calls of refresh(), one in 10 ms, before another page is offered. The mount's daemon may have been replaced by one
/// that does not know the page.
constexpr unsigned kMostNotDelegated = 20;

constinit std::atomic<std::uint64_t> mappings{0};

std::uint64_t page_of_end(const struct stat& status) {
  return static_cast<std::uint64_t>(status.st_size) / kPage * kPage;
}

/// Whether fewer bytes are allocated than the file has. Only on tmpfs does a read of a hole through a mapping allocate.
bool has_holes(const struct stat& status) {
  constexpr std::uint64_t kBlock = 512;
  return static_cast<std::uint64_t>(status.st_blocks) * kBlock < page_of_end(status);
}

/// For a FUSE file system: `get(name, value, size)` reads an attribute, as getxattr.
template <class Get>
long type_passed_through(Get get) {
  static_assert(kDelegatingMount == FUSE_SUPER_MAGIC);
  std::array<char, layout::kMostPassthroughDigits> digits{};
  const ssize_t length = get(layout::kPassthroughAttribute, digits.data(), digits.size());
  if (length < 0 && errno == ENODATA) return kDelegatingMount;
  long type = 0;
  if (length > 0) std::from_chars(digits.data(), digits.data() + length, type);
  return type;
}

/// Maximum lag of the coarse clock in ns: a tick of the kernel. With a tick of 10 ms a size is valid for 2 ms longer
/// than kSizeCounts; otherwise no read would be made in place.
std::uint64_t lateness() {
  timespec tick{};
  return ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0
             ? std::min(static_cast<std::uint64_t>(tick.tv_nsec), kMostLateness)
             : kMostLateness;
}

}  // namespace

std::uint64_t reach_for(std::uint64_t size) noexcept {
  constexpr std::uint64_t kStep = std::uint64_t{2} << 20;
  return (size + size / 8 + kStep) / kStep * kStep;
}

long file_system_of_data(int fd) noexcept {
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0) return 0;
  if (system.f_type != FUSE_SUPER_MAGIC) return static_cast<long>(system.f_type);
  return type_passed_through(
      [fd](const char* name, char* value, std::size_t size) { return ::fgetxattr(fd, name, value, size); });
}

long file_system_of_data(const char* directory) noexcept {
  struct statfs system{};
  if (::statfs(directory, &system) != 0) return 0;
  if (system.f_type != FUSE_SUPER_MAGIC) return static_cast<long>(system.f_type);
  return type_passed_through([directory](const char* name, char* value, std::size_t size) {
    return ::getxattr(directory, name, value, size);
  });
}

std::uint64_t coarse_clock() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

bool can_map_file_system(long type) noexcept {
  constexpr long kXfs = 0x58465342;  // XFS_SUPER_MAGIC, which no kernel header defines
  return type == EXT4_SUPER_MAGIC || type == kXfs || type == BTRFS_SUPER_MAGIC || type == TMPFS_MAGIC;
}

bool any_was_mapped() noexcept { return mappings.load(std::memory_order_relaxed) != 0; }

bool can_be_mapped(int fd, const struct stat& status) noexcept {
  if (!can_guard_copies() || !S_ISREG(status.st_mode)) return false;
  const int error = errno;
  const int flags = ::fcntl(fd, F_GETFL);
  bool can = flags >= 0 && (flags & (O_DIRECT | O_PATH)) == 0 && (flags & O_ACCMODE) != O_WRONLY;
  const long type = can ? file_system_of_data(fd) : 0;
  const bool is_only_read = (flags & (O_ACCMODE | O_APPEND)) == O_RDONLY;
  can = can && (can_map_file_system(type) || (type == kDelegatingMount && is_only_read));
  errno = error;
  return can;
}

bool MappedFile::map(int fd, const struct stat& status, std::uintptr_t owner, Revoke revoke) noexcept {
  if (status.st_size < static_cast<off_t>(kPage) || static_cast<std::uint64_t>(status.st_size) >= kLargest)
    return false;
  const int error = errno;
  // A function that is noexcept must not be cancelled, and the calls of an offer are cancellation points.
  int cancel = PTHREAD_CANCEL_ENABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  const long type = file_system_of_data(fd);
  const bool may_be_sparse = type == TMPFS_MAGIC;
  const int delegation = type == kDelegatingMount ? offer_delegation_page(fd) : -1;
  if (type == kDelegatingMount && delegation < 0)
    is_refused_.store(is_refused_for_good(errno), std::memory_order_relaxed);
  const bool is_possible = type == kDelegatingMount ? delegation >= 0 : !(may_be_sparse && has_holes(status));
  const bool mapped = is_possible && map_here(fd, status, owner, revoke, may_be_sparse, delegation);
  if (delegation >= 0) ::close(delegation);
  ::pthread_setcancelstate(cancel, nullptr);
  errno = error;
  return mapped;
}

bool MappedFile::map_here(int fd, const struct stat& status, std::uintptr_t owner, Revoke revoke, bool may_be_sparse,
                          int delegation) noexcept {
  const RegionsLock here;
  drop_locked(here, owner);
  const Region region =
      map_region(here, fd, reach_for(static_cast<std::uint64_t>(status.st_size)), owner, revoke, delegation);
  if (region.number == kNoRegion) return false;
  const auto* const page = reinterpret_cast<const layout::DelegationPage*>(region.page);
  device_.store(status.st_dev, std::memory_order_relaxed);
  inode_.store(status.st_ino, std::memory_order_relaxed);
  serial_.store(mappings.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  is_refused_.store(false, std::memory_order_relaxed);
  delegation_.store(page, std::memory_order_relaxed);
  not_delegated_.store(0, std::memory_order_relaxed);
  counter_.store(page != nullptr ? &page->recalls : &truncation_counter(status.st_dev, status.st_ino),
                 std::memory_order_relaxed);
  may_be_sparse_.store(may_be_sparse, std::memory_order_relaxed);
  reach_.store(region.bytes.size(), std::memory_order_relaxed);
  readable_.store(0, std::memory_order_relaxed);
  deadline_.store(0, std::memory_order_relaxed);  // refresh() reads the size
  region_.store(region.number + 1, std::memory_order_relaxed);
  begin_.store(region.bytes.data(), std::memory_order_release);  // MAPPED release: the fields
  return true;
}

void MappedFile::drop(std::uintptr_t owner) noexcept {
  const RegionsLock here;
  drop_locked(here, owner);
}

void MappedFile::drop_locked(const RegionsLock& held, std::uintptr_t owner) noexcept {
  const std::uint32_t region = region_.load(std::memory_order_relaxed);
  forget();
  if (region != 0) unmap_region(held, region - 1, owner);
}

void MappedFile::forget() noexcept {
  begin_.store(nullptr, std::memory_order_relaxed);
  readable_.store(0, std::memory_order_relaxed);
  region_.store(0, std::memory_order_relaxed);
  delegation_.store(nullptr, std::memory_order_relaxed);
}

MappedFile::Truncations MappedFile::truncations() const noexcept {
  const TruncationCounter* const counter = counter_.load(std::memory_order_relaxed);
  std::uint32_t count = 0;
  if (counter == nullptr || !read_counter(*counter, count)) return {};
  std::atomic_thread_fence(std::memory_order_acquire);  // TRUNCATED acquire: the truncations that were counted
  return {.counter = counter, .count = count};
}

MappedFile::Look MappedFile::refresh(int fd, Truncations before) noexcept {
  const int error = errno;
  // Invalid if another file was mapped meanwhile.
  const bool counted = before.counter != nullptr && before.counter == counter_.load(std::memory_order_relaxed);
  struct stat status{};
  std::uint64_t now = 0;
  bool known = true;
  bool is_current = false;
  // Only an fstat during a delegation makes the kernel drop the pages that are out of date. The first one may begin the
  // delegation.
  for (int attempt = 0; known && !is_current && attempt < 2; attempt++) {
    now = coarse_clock();  // before fstat, which may take long
    is_current = delegated_until() > now + lateness();
    if (attempt == 0 || is_current) known = ::fstat(fd, &status) == 0;
  }
  errno = error;
  if (!known || status.st_dev != device_.load(std::memory_order_relaxed) ||
      status.st_ino != inode_.load(std::memory_order_relaxed)) {
    return Look::other_file;
  }
  const std::uint64_t reach = reach_.load(std::memory_order_relaxed);
  const bool sparse = may_be_sparse_.load(std::memory_order_relaxed) && has_holes(status);
  const bool usable = counted && is_current && !sparse;
  readable_.store(usable ? std::min(page_of_end(status), reach) : 0, std::memory_order_relaxed);
  const std::uint64_t until = std::min(now + kSizeCounts, is_current ? delegated_until() : kAlways);
  count_.store(before.count, std::memory_order_release);                            // SIZE release: the size
  deadline_.store(until - std::min(until, lateness()), std::memory_order_release);  // SIZE release: the size
  touch_region(region_.load(std::memory_order_relaxed) - 1, now);
  const unsigned not_delegated = is_current ? 0 : not_delegated_.load(std::memory_order_relaxed) + 1;
  not_delegated_.store(not_delegated, std::memory_order_relaxed);
  return page_of_end(status) > reach || not_delegated >= kMostNotDelegated ? Look::must_map_again : Look::usable;
}

/// By CLOCK_MONOTONIC in ns. kAlways: the file needs no delegation.
std::uint64_t MappedFile::delegated_until() const noexcept {
  if (delegation_.load(std::memory_order_relaxed) == nullptr) return kAlways;
  const RegionsLock here;  // the page stays mapped
  const layout::DelegationPage* const page = delegation_.load(std::memory_order_relaxed);
  return page == nullptr ? 0 : page->until.load(std::memory_order_acquire);  // DELEGATED acquire: the recalls before
}

bool MappedFile::is_resident(std::uint64_t offset) const noexcept {
  const std::byte* const begin = begin_.load(std::memory_order_acquire);  // MAPPED acquire: the fields
  const std::uint64_t page = offset / kPage * kPage;
  if (begin == nullptr || !has(page, kPage)) return false;
  unsigned char resident = 0;
  const int error = errno;
  const bool known = ::mincore(const_cast<std::byte*>(begin) + page, kPage, &resident) == 0;
  errno = error;
  return known && (resident & 1) != 0;
}

}  // namespace wherry::file::mapped
