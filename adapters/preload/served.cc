// SPDX-License-Identifier: Apache-2.0
#include "served.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "directories.hpp"
#include "next.hpp"
#include "sharing.hpp"
#include "store.hpp"

namespace wherry::preload {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;  // ns
// The clock is up to 10 ms late: together 100.
constexpr std::uint64_t kUsableFor = 90 * kMillisecond;
/// A block that was never filled costs its pages: at the first touch only reads so small get that back within one pass.
constexpr std::size_t kFillsAtOnce = 2048;
/// Longer reads are the kernel's.
constexpr std::size_t kLongest = std::size_t{64} << 20;

std::uint64_t coarse_clock() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// A File in one word, so that it is read whole; all ones: none.
constexpr std::uint64_t kNoFile = ~std::uint64_t{0};
constexpr unsigned kBornBits = 48;

std::uint64_t packed(const file::File& file) {
  if (file.none() || file.slot >= UINT16_MAX || file.born >> kBornBits != 0) return kNoFile;
  return std::uint64_t{file.slot} << kBornBits | file.born;
}

file::File unpacked(std::uint64_t word) {
  if (word == kNoFile) return {};
  return {.slot = static_cast<std::uint32_t>(word >> kBornBits), .born = word & ((std::uint64_t{1} << kBornBits) - 1)};
}

/// When the stamp is to be compared next, and in the lowest bit whether the cache may be used until then.
std::uint64_t deadline_for(file::Validity validity) {
  const bool usable = validity == file::Validity::usable;
  const std::uint64_t wait = validity == file::Validity::unsettled ? file::kSettledAfter : kUsableFor;
  return (coarse_clock() + wait) << 1 | std::uint64_t{usable};
}

/// A place for the file in the cache, compared with its stamp.
std::uint64_t opened(file::Cache& cache, const struct stat& status, std::uint64_t now, std::uint64_t& deadline) {
  const file::File file = cache.open(file::Key(status));
  const std::uint64_t word = packed(file);
  const auto validity = word == kNoFile ? file::Validity::gone : cache.validate(file, file::Stamp(status, now));
  deadline = deadline_for(validity);
  return word;
}

bool is_file_of(const Entry& entry, const struct stat& status) {
  return entry.device.load(std::memory_order_relaxed) == status.st_dev &&
         entry.inode.load(std::memory_order_relaxed) == status.st_ino;
}

/// Compares the stamp. False: the kernel is to be asked for now.
bool compare(int fd, Entry& entry, State state, file::Cache& cache) {
  const std::uint64_t now = file::Stamp::now();
  struct stat status{};
  if (fstat(fd, &status) != 0) return false;
  if (entry.load().generation() != state.generation()) return false;
  if (!is_file_of(entry, status)) {
    // Its number was given to another file, and nothing here was told.
    share_offset(fd);
    never_track(fd);
    return false;
  }
  const file::File file = unpacked(entry.file.load(std::memory_order_relaxed));
  auto validity = file.none() ? file::Validity::gone : cache.validate(file, file::Stamp(status, now));
  std::uint64_t deadline = deadline_for(validity);
  const SetupLock lock;
  if (!lock || entry.load().generation() != state.generation()) return false;
  if (validity == file::Validity::gone) {
    entry.file.store(opened(cache, status, now, deadline), std::memory_order_relaxed);
  }
  entry.deadline.store(deadline, std::memory_order_relaxed);
  return (deadline & 1) != 0;
}

bool is_usable(int fd, Entry& entry, State state, file::Cache& cache) {
  const std::uint64_t deadline = entry.deadline.load(std::memory_order_relaxed);
  if (coarse_clock() < deadline >> 1) [[likely]]
    return (deadline & 1) != 0;
  const int error = errno;
  const bool usable = compare(fd, entry, state, cache);
  errno = error;
  return usable;
}

/// What the kernel would refuse with EFAULT without looking at its pages. Of another bad address a hit makes a SIGSEGV.
bool can_be_memory(const void* buffer, std::size_t bytes) {
  constexpr std::uintptr_t kLowest = 1 << 16;
  constexpr std::uintptr_t kHighest = std::uintptr_t{1} << 47;
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  return address >= kLowest && address < kHighest - kLongest && bytes <= kLongest;
}

/// One read that was not wholly in the cache.
class Miss {
 public:
  Miss(int fd, Entry& entry, State state, file::Cache& cache, file::File file, std::uint64_t offset)
      : fd_(fd), entry_(entry), state_(state), cache_(cache), file_(file), offset_(offset) {}

  /// The bytes read. -1: it is the kernel's, from the beginning.
  ssize_t read(std::span<std::byte> to) {
    const std::size_t wanted = to.size();
    const file::Admission when = admission(wanted);
    while (!to.empty()) {
      const auto part = to.first(std::min(to.size(), layout::kFileBlock - offset_ % layout::kFileBlock));
      if (read_block(part, when)) {
        if (!read_kernels()) break;
      } else if (wanted < file::kLargeRead) {
        return -1;
      } else if (to.size() == wanted) {
        return read_all_of_kernel(to, when);
      } else {
        kernels_ = kernels_.empty() ? part : std::span(kernels_.data(), kernels_.size() + part.size());
      }
      offset_ += part.size();
      to = to.subspan(part.size());
    }
    return read_kernels() ? static_cast<ssize_t>(wanted) : -1;
  }

 private:
  file::Admission admission(std::size_t bytes) {
    const std::uint64_t first = offset_ / layout::kFileBlock;
    const std::uint64_t last = (offset_ + bytes - 1) / layout::kFileBlock;
    const std::uint64_t before = entry_.following.exchange(last, std::memory_order_relaxed);
    if (chosen_path() == Path::comp) return file::Admission::first_touch;
    // The next part of a block is no second touch.
    goes_on_ = first == before && last == before && bytes > kFillsAtOnce;
    const bool in_order = first == before || first == before + 1;
    return file::admission(bytes, in_order && bytes <= kFillsAtOnce);
  }

  /// A part of one block: from the cache, or into the cache and from there.
  bool read_block(std::span<std::byte> part, file::Admission when) {
    if (goes_on_) return false;
    file::Fill fill = cache_.fill(file_, offset_ / layout::kFileBlock, when);
    if (!fill) return cache_.read(file_, offset_, part);
    const std::uint64_t forks_before = forks();
    const auto memory = fill.memory();
    // Not the C library's call: a thread must not be cancelled while it holds the block.
    const long got = WHERRY_NEXT(syscall, SYS_pread64, fd_, memory.data(), memory.size(), fill.offset());
    if (forks() != forks_before) {
      fill.forget();
      return false;
    }
    if (got <= 0 || !still_this_file()) return false;
    const std::size_t begin = offset_ - fill.offset();
    const bool enough = static_cast<std::size_t>(got) >= begin + part.size();
    if (enough) std::memcpy(part.data(), memory.data() + begin, part.size());
    fill.publish(static_cast<std::size_t>(got));
    return enough;
  }

  /// Other processes will read this block: it must not be of a file that has the number by now.
  bool still_this_file() const {
    struct stat status{};
    return fstat(fd_, &status) == 0 && entry_.load().generation() == state_.generation() && is_file_of(entry_, status);
  }

  /// What was left out before this place.
  bool read_kernels() {
    if (kernels_.empty()) return true;
    const auto begin = static_cast<off_t>(offset_ - kernels_.size());
    if (WHERRY_NEXT(pread64, fd_, kernels_.data(), kernels_.size(), begin) != static_cast<ssize_t>(kernels_.size())) {
      return false;
    }
    kernels_ = {};
    return true;
  }

  /// A large read whose first block is not to be had: one call, and the other blocks are known to have been wanted.
  ssize_t read_all_of_kernel(std::span<std::byte> to, file::Admission when) {
    const ssize_t got = WHERRY_NEXT(pread64, fd_, to.data(), to.size(), static_cast<off_t>(offset_));
    const std::uint64_t end = offset_ + static_cast<std::uint64_t>(std::max(got, ssize_t{0}));
    for (std::uint64_t block = offset_ / layout::kFileBlock + 1; block * layout::kFileBlock < end; block++) {
      (void)cache_.fill(file_, block, when);
    }
    return got;
  }

  int fd_;
  Entry& entry_;
  State state_;
  file::Cache& cache_;
  file::File file_;
  std::uint64_t offset_;
  bool goes_on_ = false;
  std::span<std::byte> kernels_;  // left out, and ends at offset_
};

}  // namespace

Tracking track(int fd, Entry& entry, State state) noexcept {
  if (chosen_path() == Path::local || !any_directories()) return Tracking::never;
  const int error = errno;
  const SetupLock lock;
  if (!lock) return Tracking::later;
  const std::uint64_t now = file::Stamp::now();
  struct stat status{};
  const int flags = WHERRY_NEXT(fcntl, fd, F_GETFL);
  Tracking result = Tracking::never;
  if (flags >= 0 && (flags & (O_DIRECT | O_PATH)) == 0 && (flags & O_ACCMODE) != O_WRONLY && fstat(fd, &status) == 0 &&
      on_cached_device(status) && lies_below(fd)) {
    if (file::Cache* const store = cache(); store != nullptr) {
      std::uint64_t deadline = 0;
      const std::uint64_t file = opened(*store, status, now, deadline);
      result = Tracking::later;
      if (entry.load().word == state.word) {
        entry.file.store(file, std::memory_order_relaxed);
        entry.deadline.store(deadline, std::memory_order_relaxed);
        entry.following.store(0, std::memory_order_relaxed);
        entry.device.store(status.st_dev, std::memory_order_relaxed);
        entry.inode.store(status.st_ino, std::memory_order_relaxed);
        result = Tracking::tracked;
      }
    }
  }
  errno = error;
  return result;
}

ssize_t read_tracked(int fd, Entry& entry, State state, void* buffer, std::size_t bytes, off_t offset) {
  file::Cache* const store = cache();
  if (store != nullptr && offset >= 0 && bytes != 0 && can_be_memory(buffer, bytes) &&
      is_usable(fd, entry, state, *store)) {
    pthread_testcancel();
    const file::File file = unpacked(entry.file.load(std::memory_order_relaxed));
    const auto begin = static_cast<std::uint64_t>(offset);
    const std::span<std::byte> to(static_cast<std::byte*>(buffer), bytes);
    const int error = errno;
    auto got = static_cast<ssize_t>(bytes);
    if (!store->read(file, begin, to)) got = Miss(fd, entry, state, *store, file, begin).read(to);
    errno = error;
    // Rule 3 of descriptors.hpp.
    if (got >= 0 && entry.load().generation() == state.generation()) return got;
  }
  return WHERRY_NEXT(pread64, fd, buffer, bytes, offset);
}

}  // namespace wherry::preload
