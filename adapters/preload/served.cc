// SPDX-License-Identifier: Apache-2.0
#include "served.hpp"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <optional>

#include "direct_transfers.hpp"
#include "directories.hpp"
#include "file/mapped/copies_under_way.hpp"
#include "file/mapped/fault_signals.hpp"
#include "file/mapped/guarded_copy.hpp"
#include "file/mapped/in_place.hpp"
#include "file/mapped/touched_parts.hpp"
#include "next.hpp"
#include "report.hpp"
#include "sharing.hpp"

namespace wherry::preload {
namespace {

using file::mapped::MappedFile;
using file::mapped::Progress;

/// Most parts of a readv that is read in place; with more, the kernel reads.
constexpr std::size_t kMostParts = 16;

bool is_chosen(const Entry& entry) { return entry.choice.load(std::memory_order_relaxed) != Choice::none; }

file::mapped::Sigaction next_sigaction() {
  return reinterpret_cast<file::mapped::Sigaction>(next_function(Hook::k_sigaction));
}

/// Maps the file. The caller has the SetupLock. Returns false if the fields are not stored.
bool map_file(int fd, Entry& entry, const struct stat& status) {
  return file::mapped::catch_faults(next_sigaction()) &&
         entry.file.map(fd, status, static_cast<std::uintptr_t>(fd), revoke_mapping);
}

// Rare functions are not inlined: they would take most of a frame that every read sets up.

/// Maps the file of a tracked descriptor again, whose mapping was removed for another one or was too short.
[[gnu::noinline]] void map_again(int fd, Entry& entry, State state) {
  if (!file::mapped::is_time_to_map_again(entry.progress)) return;
  const int error = errno;
  const SetupLock lock(fd);
  struct stat status{};
  if (lock && entry.load_in_setup().generation() == state.generation() && !entry.file.is_mapped() &&
      fstat(fd, &status) == 0) {
    map_file(fd, entry, status);
  }
  errno = error;
}

/// Checks the size of the file. Returns false if the kernel must make the read.
[[gnu::noinline]] bool refresh(int fd, Entry& entry, State state) {
  const auto truncations = entry.file.truncations();
  const SetupLock lock(fd);
  if (!lock || entry.load_in_setup().generation() != state.generation()) return false;
  switch (entry.file.refresh(fd, truncations)) {
    case MappedFile::Look::usable:
      return true;
    case MappedFile::Look::must_map_again:
      drop_mapping(fd);
      return false;
    case MappedFile::Look::other_file:
      // A call that passed no hook has given the number to another file.
      never_track(fd, lock);
      return false;
  }
  return false;
}

/// A tracked descriptor, as file::mapped expects it.
struct Tracked {
  int fd;
  Entry& entry;
  State state;
  bool eager;

  [[nodiscard]] MappedFile& file() const { return entry.file; }
  [[nodiscard]] std::atomic<std::uint64_t>& progress() const { return entry.progress; }
  [[nodiscard]] bool is_eager() const { return eager; }
  void map_again() const { preload::map_again(fd, entry, state); }
  [[nodiscard]] bool refresh() const { return preload::refresh(fd, entry, state); }
};

/// Whether to copy all of these bytes from the mapping.
bool is_in_place(int fd, Entry& entry, State state, off_t offset, std::uint64_t bytes, bool eager) {
  Tracked tracked{fd, entry, state, eager};
  // Checking the size reads the page of truncations, which may be cut.
  return offset >= 0 && file::mapped::takes_faults() &&
         file::mapped::is_in_place(tracked, static_cast<std::uint64_t>(offset), bytes);
}

bool is_eager(const Entry& entry) { return entry.choice.load(std::memory_order_relaxed) == Choice::cache; }

bool copy(Entry& entry, State state, void* buffer, std::size_t bytes, off_t offset) {
  const bool copied = entry.file.copy(buffer, static_cast<std::uint64_t>(offset), bytes);
  // Rule 3 of descriptors.hpp.
  return copied && entry.load().generation() == state.generation();
}

/// A read that may go past the mount: whichever way is faster. Pages that the kernel has are read in place.
[[gnu::noinline]] ssize_t read_either_way(int fd, Entry& entry, State state, void* buffer, std::size_t bytes,
                                          off_t offset) {
  bool is_typical = true;
  auto copy_here = [&]() -> ssize_t {
    if (!is_in_place(fd, entry, state, offset, bytes, true)) return -1;
    is_typical = file::mapped::was_touched(entry.file.serial(), static_cast<std::uint64_t>(offset), bytes);
    return copy(entry, state, buffer, bytes, offset) ? static_cast<ssize_t>(bytes) : -1;
  };
  const InPlace in_place{.copy = KernelsCall(copy_here), .is_typical = is_typical};
  if (const auto moved = pread_direct(fd, buffer, bytes, offset, &in_place)) return *moved;
  // Not past the mount, for whatever reason.
  const bool is_here = is_in_place(fd, entry, state, offset, bytes, false) && copy(entry, state, buffer, bytes, offset);
  const ssize_t result = is_here ? static_cast<ssize_t>(bytes) : WHERRY_NEXT(pread, fd, buffer, bytes, offset);
  if (reports()) count_transfer(fd, false, is_here ? Route::in_place : Route::kernel, result);
  return result;
}

/// Returns the path of a file by its name; nothing if it is not served.
std::optional<Path> path_of(int fd, const struct stat& status) {
  if (!on_cached_device(status) || !file::mapped::can_be_mapped(fd, status)) return std::nullopt;
  const auto path = path_below(fd);
  return path ? std::optional(in_place(*path)) : path;
}

Tracking track_locked(int fd, Entry& entry, State state, const struct stat& status) {
  const auto path = path_of(fd, status);
  const bool chosen = is_chosen(entry);
  if (!path || (*path == Path::kernel && !chosen)) return Tracking::never;
  if (entry.load_in_setup().word != state.word) return Tracking::later;
  // `auto` of reads in place is not that of transfers past a mount.
  if (!chosen && *path == Path::cache) entry.choice.store(Choice::cache, std::memory_order_relaxed);
  Progress progress = Progress::of(entry.progress.load(std::memory_order_relaxed));
  progress.refused = !map_file(fd, entry, status);
  entry.progress.store(progress.word(), std::memory_order_relaxed);
  if (!progress.refused) return Tracking::tracked;
  return entry.file.is_refused() ? Tracking::never : Tracking::later;
}

}  // namespace

Tracking track(int fd, Entry& entry, State state) noexcept {
  if (!any_directories() || (chosen_path() == Path::kernel && !any_rules() && !is_chosen(entry))) {
    return Tracking::never;
  }
  const int error = errno;
  const SetupLock lock(fd);
  if (!lock) return Tracking::later;
  struct stat status{};
  const Tracking result = fstat(fd, &status) == 0 ? track_locked(fd, entry, state, status) : Tracking::later;
  errno = error;
  return result;
}

ssize_t read_tracked(int fd, Entry& entry, State state, void* buffer, std::size_t bytes, off_t offset) {
  const bool eager = is_eager(entry);
  if (!eager && entry.file.needs_delegation() && may_read_direct(fd, bytes)) [[unlikely]]
    return read_either_way(fd, entry, state, buffer, bytes, offset);
  if (is_in_place(fd, entry, state, offset, bytes, eager)) {
    pthread_testcancel();
    if (copy(entry, state, buffer, bytes, offset)) [[likely]] {
      if (reports()) [[unlikely]]
        count_transfer(fd, false, Route::in_place, static_cast<ssize_t>(bytes));
      return static_cast<ssize_t>(bytes);
    }
  }
  return pread_not_in_place(fd, buffer, bytes, offset);
}

namespace {

/// The parts of a readv, copied before they are read: their address may be bad, which the kernel must report.
struct Parts {
  std::array<iovec, kMostParts> parts{};
  std::size_t count = 0;
  std::uint64_t bytes = 0;  // 0: the kernel must check them

  Parts(const iovec* given, int given_count) {
    if (given_count <= 0 || static_cast<std::size_t>(given_count) > kMostParts) return;
    const file::mapped::CopyUnderWay here;
    if (!here || !file::mapped::takes_faults()) return;
    count = static_cast<std::size_t>(given_count);
    if (!file::mapped::copy_or_fault(parts.data(), given, count * sizeof(iovec))) return;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; i++) {
      if (__builtin_add_overflow(sum, parts[i].iov_len, &sum) || sum > SSIZE_MAX) return;
    }
    bytes = sum;
  }

  bool copy(MappedFile& file, std::uint64_t offset) {
    for (std::size_t i = 0; i < count; i++) {
      if (parts[i].iov_len == 0) continue;
      if (!file.copy(parts[i].iov_base, offset, parts[i].iov_len)) return false;
      offset += parts[i].iov_len;
    }
    return true;
  }
};

}  // namespace

ssize_t readv_tracked(int fd, Entry& entry, State state, const iovec* parts, int count, off_t offset) {
  Parts checked(parts, count);
  if (checked.bytes != 0 && is_in_place(fd, entry, state, offset, checked.bytes, is_eager(entry))) {
    pthread_testcancel();
    if (checked.copy(entry.file, static_cast<std::uint64_t>(offset)) &&
        entry.load().generation() == state.generation()) {
      if (reports()) count_transfer(fd, false, Route::in_place, static_cast<ssize_t>(checked.bytes));
      return static_cast<ssize_t>(checked.bytes);
    }
  }
  const ssize_t result = WHERRY_NEXT(preadv, fd, parts, count, offset);
  if (reports()) count_transfer(fd, false, Route::kernel, result);
  return result;
}

}  // namespace wherry::preload
