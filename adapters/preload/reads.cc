// SPDX-License-Identifier: Apache-2.0
#include "reads.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "calls_inside.hpp"
#include "descriptors.hpp"
#include "direct_transfers.hpp"
#include "directories.hpp"
#include "file/mapped/in_place.hpp"
#include "next.hpp"
#include "report.hpp"
#include "served.hpp"
#include "sharing.hpp"
#include "vfork.hpp"
#include "write_rings.hpp"

namespace wherry::preload {
namespace {

using file::mapped::cost_of_read;
using file::mapped::Progress;

/// Stands for an offset that only the kernel knows.
constexpr std::uint64_t kUnknownOffset = UINT64_MAX;

bool has_spent_enough(const Entry& entry, State state, std::uint64_t offset, std::uint64_t bytes) {
  if (!entry.may_be_tracked()) return false;
  // The file is never mapped then, so its cost need not be counted, unless its reads may go past a mount.
  if (chosen_path() == Path::kernel && !any_rules() && least_direct() == SIZE_MAX) return true;
  if (state.spent() < file::mapped::kSpentBeforeEager) return false;
  const Progress progress = Progress::of(entry.progress.load(std::memory_order_relaxed));
  const Choice choice = entry.choice.load(std::memory_order_relaxed);
  const bool eager = choice == Choice::cache || (choice == Choice::none && chosen_path() == Path::cache);
  return file::mapped::is_time_to_map(state.spent(), offset, bytes, progress, eager);
}

/// Makes a read by the kernel, and counts it for the report.
template <typename Call>
ssize_t counted_read(int fd, Call call) {
  const ssize_t result = call();
  if (reports()) count_transfer(fd, false, Route::kernel, result);
  return result;
}

/// Checks the file of a descriptor that has been read often enough. Returns true if its state has changed.
bool try_tracking(int fd, Entry& entry, State before) {
  switch (track(fd, entry, before)) {
    case Tracking::later:
      // Tries again after the same cost.
      entry.exchange(before, before.with(before.mode(), 0));
      break;
    case Tracking::never:
      entry.exchange(before, before.with(may_become_direct(fd) ? before.mode() : Mode::never, 0));
      break;
    case Tracking::tracked:
      if (before.mode() == Mode::own) {
        own_offset(fd, entry, before);
      } else {
        entry.exchange(before, before.with(Mode::shared, 0));
      }
      break;
  }
  if (!entry.load().tracked()) drop_mapping(fd);
  return entry.load().word != before.word;
}

/// The cost of a read that is about to be made.
std::uint64_t more_spent(const Entry& entry, State before, std::uint64_t bytes) {
  return entry.may_be_tracked() && before.spent() < file::mapped::kMostSpent ? cost_of_read(bytes) : 0;
}

/// Estimates the bytes of all parts. The parts are not read, because they may lie outside mapped memory.
std::uint64_t bytes_of(int count) {
  constexpr std::uint64_t kUsual = 4096;
  return count <= 0 || count > IOV_MAX ? 0 : kUsual * static_cast<std::uint64_t>(count);
}

/// read or readv of `bytes` bytes. `tracked(entry, state)` reads a descriptor of mode `user` at its offset, and
/// `direct(entry, state)` past the mount; `kernels()` is the kernel's call.
template <typename Tracked, typename Direct, typename Kernels>
ssize_t read_on(int fd, std::uint64_t bytes, Tracked tracked, Direct direct, Kernels kernels) {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr || in_vfork_child()) return kernels();
  // Once per call, since nothing has changed if it fails.
  for (bool may_go_direct = true;;) {
    State state = entry->load();
    switch (state.mode()) {
      case Mode::user: {
        const ssize_t result = tracked(*entry, state);
        if (result < 0) return result;
        const std::uint64_t end = state.number() + static_cast<std::uint64_t>(result);
        if (end >= State::kNumbers) {
          share_offset(fd);
        } else if (entry->exchange(state, state.with(Mode::user, end))) {
          return result;
        }
        continue;
      }
      case Mode::own:
        if (has_spent_enough(*entry, state, kUnknownOffset, bytes) && state.inside() == 0 &&
            try_tracking(fd, *entry, state))
          continue;
        if (may_go_direct && entry->may_be_tracked()) {
          if (const auto moved = direct(*entry, state)) return *moved;
          may_go_direct = false;
          continue;
        }
        if (!go_inside(*entry, state, more_spent(*entry, state, bytes))) continue;
        return call_inside(*entry, state, kernels);
      case Mode::moving:
        settled(*entry);
        continue;
      case Mode::ring:
        return_offset(fd);
        continue;
      case Mode::unknown:
      case Mode::shared:
      case Mode::never:
        return kernels();
    }
  }
}

/// pread or preadv, likewise.
template <typename Tracked, typename Kernels>
ssize_t read_at(int fd, std::uint64_t bytes, off_t offset, Tracked tracked, Kernels kernels) {
  Entry* const entry = entry_of(fd);
  if (entry != nullptr && !in_vfork_child()) {
    State state = entry->load();
    // Another thread may be ending a ring.
    if (state.mode() == Mode::moving) state = settled(*entry);
    if (state.mode() == Mode::ring) return_offset(fd);
    const bool may_change = state.mode() == Mode::unknown || state.mode() == Mode::own;
    if (may_change && entry->may_be_tracked() && state.inside() == 0) {
      if (!has_spent_enough(*entry, state, static_cast<std::uint64_t>(offset), bytes)) {
        entry->exchange(state, {state.word + cost_of_read(bytes)});
      } else if (try_tracking(fd, *entry, state)) {
        state = entry->load();
      }
    }
    if (state.tracked()) return tracked(*entry, state);
  }
  return kernels();
}

}  // namespace

ssize_t read_here(int fd, void* buffer, std::size_t bytes) {
  const auto tracked = [&](Entry& entry, State state) {
    return read_tracked(fd, entry, state, buffer, bytes, static_cast<off_t>(state.number()));
  };
  const auto kernels = [&] { return WHERRY_NEXT(read, fd, buffer, bytes); };
  const auto direct = [&](Entry& entry, State state) -> std::optional<ssize_t> {
    if (!may_read_direct(fd, bytes)) return std::nullopt;
    const std::uint64_t cost = more_spent(entry, state, bytes);
    auto call = [&] { return call_at_kernels_offset(fd, entry, cost, kernels); };
    return read_direct(fd, entry, state, cost, buffer, bytes, KernelsCall(call));
  };
  return read_on(fd, bytes, tracked, direct, [&] { return counted_read(fd, kernels); });
}

ssize_t readv_here(int fd, const iovec* parts, int count) {
  return read_on(
      fd, bytes_of(count),
      [&](Entry& entry, State state) {
        return readv_tracked(fd, entry, state, parts, count, static_cast<off_t>(state.number()));
      },
      not_past_mount, [&] { return counted_read(fd, [&] { return WHERRY_NEXT(readv, fd, parts, count); }); });
}

ssize_t pread_here(int fd, void* buffer, std::size_t bytes, off_t offset) {
  return read_at(
      fd, bytes, offset,
      [&](Entry& entry, State state) { return read_tracked(fd, entry, state, buffer, bytes, offset); },
      [&] { return pread_not_in_place(fd, buffer, bytes, offset); });
}

ssize_t preadv_here(int fd, const iovec* parts, int count, off_t offset) {
  return read_at(
      fd, bytes_of(count), offset,
      [&](Entry& entry, State state) { return readv_tracked(fd, entry, state, parts, count, offset); },
      [&] { return counted_read(fd, [&] { return WHERRY_NEXT(preadv, fd, parts, count, offset); }); });
}

off_t lseek_here(int fd, off_t offset, int whence) {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr || in_vfork_child()) return WHERRY_NEXT(lseek, fd, offset, whence);
  while (true) {
    State state = entry->load();
    if (state.mode() == Mode::moving) {
      settled(*entry);
    } else if (state.mode() == Mode::own) {
      const bool from_beginning = whence == SEEK_SET && offset == 0;
      if (from_beginning && state.inside() == 0 && has_spent_enough(*entry, state, 0, file::mapped::kLongRead) &&
          try_tracking(fd, *entry, state))
        continue;
      if (!go_inside(*entry, state, 0)) continue;
      return call_inside(*entry, state, [&] { return WHERRY_NEXT(lseek, fd, offset, whence); });
    } else if (state.mode() == Mode::ring) {
      if (const auto moved = seek_in_ring(fd, offset, whence)) return *moved;
      return_offset(fd);
    } else if (state.mode() != Mode::user) {
      return WHERRY_NEXT(lseek, fd, offset, whence);
    } else {
      // The kernel's offset is not valid here. The kernel is asked only for the end, data and holes.
      const auto now = static_cast<off_t>(state.number());
      off_t wanted = offset;
      if (whence == SEEK_CUR && __builtin_add_overflow(now, offset, &wanted)) {
        errno = EINVAL;
        return -1;
      }
      if (whence != SEEK_SET && whence != SEEK_CUR) wanted = WHERRY_NEXT(lseek, fd, offset, whence);
      if (wanted < 0) {
        if (whence == SEEK_SET || whence == SEEK_CUR) errno = EINVAL;
        return -1;
      }
      if (static_cast<std::uint64_t>(wanted) >= State::kNumbers) {
        share_offset(fd);
      } else if (entry->exchange(state, state.with(Mode::user, static_cast<std::uint64_t>(wanted)))) {
        return wanted;
      }
    }
  }
}

}  // namespace wherry::preload
