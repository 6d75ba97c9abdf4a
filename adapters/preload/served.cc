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
#include "file/cache_looks.hpp"
#include "miss.hpp"
#include "next.hpp"
#include "program_memory.hpp"
#include "progress.hpp"
#include "sharing.hpp"
#include "store.hpp"

namespace wherry::preload {
namespace {

/// Longer reads are the kernel's.
constexpr std::size_t kLongest = std::size_t{64} << 20;
/// IOV_MAX: more are refused.
constexpr int kMostParts = 1024;

constexpr unsigned kValidityBits = 2;

/// When the stamp is to be compared next, and what was found when it was compared last.
std::uint64_t deadline_for(file::Validity validity) {
  return (file::coarse_clock() + file::counts_for(validity)) << kValidityBits | static_cast<std::uint64_t>(validity);
}

file::Validity validity_of(std::uint64_t deadline) {
  return static_cast<file::Validity>(deadline & ((1U << kValidityBits) - 1));
}

/// A place for the file in the cache, compared with its stamp.
std::uint64_t opened(file::Cache& cache, int fd, const struct stat& status, std::uint64_t now,
                     std::uint64_t& deadline) {
  const file::File file = cache.open(file::Key(status));
  const std::uint64_t word = file::packed(file);
  const auto validity = word == file::kNoFile ? file::Validity::gone : file::validate(cache, file, fd, status, now);
  deadline = deadline_for(validity);
  return word;
}

/// Compares the stamp. False: until the next comparison reads are the kernel's own calls.
bool compare(int fd, Entry& entry, State state, file::Cache& cache) {
  const std::uint64_t now = file::Stamp::now();
  struct stat status{};
  if (fstat(fd, &status) != 0) return false;
  if (entry.load().generation() != state.generation()) return false;
  if (!is_file_of(entry, status)) {
    // The number was given to another file by a call that no hook saw.
    share_offset(fd);
    never_track(fd);
    return false;
  }
  const file::File file = file::unpacked(entry.file.load(std::memory_order_relaxed));
  auto validity = file.none() ? file::Validity::gone : file::validate(cache, file, fd, status, now);
  std::uint64_t deadline = deadline_for(validity);
  const SetupLock lock;
  if (!lock || entry.load().generation() != state.generation()) return false;
  if (validity == file::Validity::gone) {
    entry.file.store(opened(cache, fd, status, now, deadline), std::memory_order_relaxed);
  }
  entry.size.store(static_cast<std::uint64_t>(status.st_size), std::memory_order_relaxed);
  entry.deadline.store(deadline, std::memory_order_relaxed);
  return validity_of(deadline) == file::Validity::usable;
}

bool is_usable(int fd, Entry& entry, State state, file::Cache& cache) {
  const std::uint64_t deadline = entry.deadline.load(std::memory_order_relaxed);
  if (file::coarse_clock() < deadline >> kValidityBits) [[likely]]
    return validity_of(deadline) == file::Validity::usable;
  const int error = errno;
  const bool usable = compare(fd, entry, state, cache);
  errno = error;
  return usable;
}

/// False for addresses that the kernel refuses with EFAULT without looking at their pages. At any other bad address a
/// hit raises SIGSEGV.
bool can_be_memory(const void* buffer, std::size_t bytes) {
  constexpr std::uintptr_t kLowest = 1 << 16;
  constexpr std::uintptr_t kHighest = std::uintptr_t{1} << 47;
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  return address >= kLowest && address < kHighest - kLongest && bytes <= kLongest;
}

/// Returns the bytes of all parts, or 0 if the kernel must judge them.
std::uint64_t bytes_in_memory(const iovec* parts, int count) {
  if (count <= 0 || count > kMostParts || !can_read(parts, static_cast<std::size_t>(count) * sizeof *parts)) return 0;
  std::uint64_t bytes = 0;
  for (int i = 0; i < count; i++) {
    if (parts[i].iov_len > kLongest || (parts[i].iov_len != 0 && !can_be_memory(parts[i].iov_base, parts[i].iov_len))) {
      return 0;
    }
    bytes += parts[i].iov_len;
  }
  return bytes;
}

/// Returns why the cache may not be used until the deadline.
file::KernelReason reason_of(std::uint64_t deadline) {
  switch (validity_of(deadline)) {
    case file::Validity::unsettled:
      return file::KernelReason::changed;
    case file::Validity::has_writer:
      return file::KernelReason::writer;
    case file::Validity::usable:
    case file::Validity::gone:
      break;
  }
  return file::KernelReason::other;
}

/// True for a read of a span whose first read found nothing in the cache.
bool is_passed_by(Entry& entry, std::uint64_t offset, std::uint64_t bytes) {
  const Progress before = Progress::of(entry);
  if (before.way != Progress::Way::kernels || !before.holds_at(offset) || bytes - 1 >= kLongest) return false;
  before.after(offset, bytes, Progress::Way::kernels).store(entry);
  return true;
}

/// Whether to ask the cache for so many bytes. If not, that is counted.
bool is_to_be_asked(int fd, Entry& entry, State state, file::Cache& cache, off_t offset, std::uint64_t bytes) {
  const auto kernels = [&](file::KernelReason reason) {
    cache.count_kernels(reason);
    return false;
  };
  if (offset < 0 || bytes == 0 || bytes > kLongest) return kernels(file::KernelReason::other);
  const auto begin = static_cast<std::uint64_t>(offset);
  if (is_passed_by(entry, begin, bytes)) return kernels(file::KernelReason::first_touch);
  if (!is_usable(fd, entry, state, cache)) return kernels(reason_of(entry.deadline.load(std::memory_order_relaxed)));
  if (begin + bytes > entry.size.load(std::memory_order_relaxed)) return kernels(file::KernelReason::end);
  return true;
}

bool serve(const Tracked& tracked, std::uint64_t offset, std::span<std::byte> to) {
  if (!tracked.cache.read(tracked.file, offset, to)) return read_by_filling(tracked, offset, to);
  Progress::of(tracked.entry).after_hit(offset, to.size()).store(tracked.entry);
  return true;
}

}  // namespace

namespace {

/// The file may be served at all: by its flags, its file system and its name. Nothing: it may not.
std::optional<Path> path_of(int fd, const struct stat& status) {
  const int flags = WHERRY_NEXT(fcntl, fd, F_GETFL);
  if (flags < 0 || (flags & (O_DIRECT | O_PATH)) != 0 || (flags & O_ACCMODE) == O_WRONLY) return std::nullopt;
  if (!on_cached_device(status)) return std::nullopt;
  // A file that has a place lies below the directories of some process of the card.
  file::Cache* const store = cache();
  if (!any_rules() && store != nullptr && store->knows(file::Key(status))) return chosen_path();
  return path_below(fd);
}

/// Stores the fields of the entry, by rule 2. False: the descriptor was closed meanwhile.
bool set_up(int fd, Entry& entry, State state, const struct stat& status, std::uint64_t now, Path path) {
  std::uint64_t deadline = 0;
  const std::uint64_t file = opened(*cache(), fd, status, now, deadline);
  if (entry.load().word != state.word) return false;
  entry.file.store(file, std::memory_order_relaxed);
  entry.deadline.store(deadline, std::memory_order_relaxed);
  entry.size.store(static_cast<std::uint64_t>(status.st_size), std::memory_order_relaxed);
  Progress progress{.choice = Progress::of(entry).choice};
  if (progress.choice == Progress::Choice::none) {
    progress.choice = path == Path::comp ? Progress::Choice::comp : Progress::Choice::automatic;
  }
  progress.store(entry);
  entry.device.store(status.st_dev, std::memory_order_relaxed);
  entry.inode.store(status.st_ino, std::memory_order_relaxed);
  return true;
}

}  // namespace

Tracking track(int fd, Entry& entry, State state) noexcept {
  const bool chosen = Progress::of(entry).choice != Progress::Choice::none;
  if (!any_directories() || (chosen_path() == Path::local && !any_rules() && !chosen)) return Tracking::never;
  const int error = errno;
  const SetupLock lock;
  if (!lock) return Tracking::later;
  const std::uint64_t now = file::Stamp::now();
  struct stat status{};
  Tracking result = Tracking::never;
  if (fstat(fd, &status) == 0) {
    const auto path = path_of(fd, status);
    if (path && (*path != Path::local || chosen) && cache() != nullptr) {
      result = set_up(fd, entry, state, status, now, *path) ? Tracking::tracked : Tracking::later;
    }
  }
  errno = error;
  return result;
}

ssize_t read_tracked(int fd, Entry& entry, State state, void* buffer, std::size_t bytes, off_t offset) {
  file::Cache* const store = cache();
  if (store != nullptr && can_be_memory(buffer, bytes) && is_to_be_asked(fd, entry, state, *store, offset, bytes)) {
    pthread_testcancel();
    const int error = errno;
    const Tracked tracked{fd, entry, state, *store, file::unpacked(entry.file.load(std::memory_order_relaxed))};
    const bool served = serve(tracked, static_cast<std::uint64_t>(offset), {static_cast<std::byte*>(buffer), bytes});
    errno = error;
    // Rule 3 of descriptors.hpp.
    if (served && entry.load().generation() == state.generation()) return static_cast<ssize_t>(bytes);
  }
  return WHERRY_NEXT(pread64, fd, buffer, bytes, offset);
}

ssize_t readv_tracked(int fd, Entry& entry, State state, const iovec* parts, int count, off_t offset) {
  file::Cache* const store = cache();
  const std::uint64_t bytes = store == nullptr ? 0 : bytes_in_memory(parts, count);
  if (bytes != 0 && is_to_be_asked(fd, entry, state, *store, offset, bytes)) {
    pthread_testcancel();
    const int error = errno;
    const Tracked tracked{fd, entry, state, *store, file::unpacked(entry.file.load(std::memory_order_relaxed))};
    auto at = static_cast<std::uint64_t>(offset);
    bool served = true;
    for (int i = 0; served && i < count; i++) {
      const std::size_t length = parts[i].iov_len;
      if (length == 0) continue;
      served = serve(tracked, at, {static_cast<std::byte*>(parts[i].iov_base), length});
      at += length;
    }
    errno = error;
    if (served && entry.load().generation() == state.generation()) return static_cast<ssize_t>(bytes);
  }
  return WHERRY_NEXT(preadv64, fd, parts, count, offset);
}

}  // namespace wherry::preload
