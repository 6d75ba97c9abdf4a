// SPDX-License-Identifier: Apache-2.0
#include "writes.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "calls_inside.hpp"
#include "descriptors.hpp"
#include "direct_descriptors.hpp"
#include "direct_files.hpp"
#include "direct_transfers.hpp"
#include "layout/write_ring.hpp"
#include "next.hpp"
#include "report.hpp"
#include "sharing.hpp"
#include "vfork.hpp"
#include "write_rings.hpp"

namespace wherry::preload {
namespace {

/// Most bytes that the kernel moves in one call.
constexpr std::size_t kMostWritten = 0x7FFFF000;

ssize_t counted_write(int fd, ssize_t result) {
  if (reports()) count_transfer(fd, true, Route::kernel, result);
  return result;
}

/// Completes a write of which a ring has made the beginning. `rest(done)` writes the rest.
template <typename Write>
ssize_t complete(int fd, std::size_t done, std::size_t bytes, Write rest) {
  if (done != 0 && reports()) count_transfer(fd, true, Route::ring, static_cast<ssize_t>(done));
  if (done == bytes) return static_cast<ssize_t>(bytes);
  return_offset(fd);
  const ssize_t more = rest(done);
  return done == 0 ? more : static_cast<ssize_t>(done) + std::max<ssize_t>(more, 0);
}

const std::byte* behind(const void* buffer, std::size_t bytes) { return static_cast<const std::byte*>(buffer) + bytes; }

/// Counts a short write in the cost of the descriptor.
std::uint64_t cost_of(State state, std::size_t bytes) {
  return bytes <= layout::kMostWrittenByRing && state.spent() + 1 < State::kInside ? 1 : 0;
}

/// Writes at the descriptor's offset: `by_ring` if it has a ring, otherwise past the mount by `direct(entry, state)`,
/// or `by_kernel`.
/// @param bytes  of the call, at least
template <typename ByRing, typename Direct, typename ByKernel>
ssize_t write_at_offset(int fd, std::size_t bytes, ByRing by_ring, Direct direct, ByKernel by_kernel) {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr || bytes == 0 || in_vfork_child()) return by_kernel();
  // Once per call, since nothing has changed if it fails.
  for (bool may_go_direct = true;;) {
    const State state = entry->load();
    switch (state.mode()) {
      case Mode::ring:
        pthread_testcancel();
        return by_ring();
      case Mode::own:
        if (is_time_for_ring(*entry, state)) {
          make_ring(fd, *entry, state);
          continue;
        }
        if (may_go_direct && entry->access.load(std::memory_order_relaxed) == Access::writes) {
          if (const auto moved = direct(*entry, state)) return *moved;
          may_go_direct = false;
          continue;
        }
        if (!go_inside(*entry, state, cost_of(state, bytes))) continue;
        return call_inside(*entry, state, by_kernel);
      case Mode::moving:
        settled(*entry);
        continue;
      case Mode::unknown:
      case Mode::user:
      case Mode::shared:
      case Mode::never:
        return by_kernel();
    }
  }
}

}  // namespace

bool waits_for_ring(int fd, std::size_t bytes) noexcept {
  const Entry* const entry = entry_of(fd);
  return bytes <= layout::kMostWrittenByRing && entry != nullptr && entry->load().mode() == Mode::own &&
         may_have_first_ring(*entry) && !is_open_at_host(fd) && path_of_transfers(fd) == files::Path::automatic;
}

ssize_t write_here(int fd, const void* buffer, std::size_t bytes) {
  const auto by_ring = [&] {
    const std::size_t most = std::min(bytes, kMostWritten);
    return complete(fd, write_by_ring(fd, buffer, most, nullptr), most,
                    [&](std::size_t from) { return write_here(fd, behind(buffer, from), most - from); });
  };
  const auto by_kernel = [&] { return WHERRY_NEXT(write, fd, buffer, bytes); };
  const auto direct = [&](Entry& entry, State state) -> std::optional<ssize_t> {
    if (!may_be_direct(fd, bytes) || waits_for_ring(fd, bytes)) return std::nullopt;
    auto call = [&] { return counted_write(fd, call_at_kernels_offset(fd, entry, cost_of(state, bytes), by_kernel)); };
    return write_direct(fd, entry, state, buffer, bytes, KernelsCall(call));
  };
  return write_at_offset(fd, bytes, by_ring, direct, [&] { return counted_write(fd, by_kernel()); });
}

ssize_t writev_here(int fd, const iovec* parts, int count) {
  const auto by_ring = [&] {
    const std::size_t done = write_parts_by_ring(fd, parts, count);
    return complete(fd, done, std::max<std::size_t>(done, 1),
                    [&](std::size_t) { return writev_here(fd, parts, count); });
  };
  return write_at_offset(fd, 1, by_ring, not_past_mount,
                         [&] { return counted_write(fd, WHERRY_NEXT(writev, fd, parts, count)); });
}

ssize_t pwrite_here(int fd, const void* buffer, std::size_t bytes, off_t offset) {
  Entry* const entry = entry_of(fd);
  const bool may_be_by_ring = bytes != 0 && bytes <= layout::kMostWrittenByRing && offset >= 0;
  if (entry != nullptr && may_be_by_ring && !in_vfork_child()) {
    State state = entry->load();
    if (state.mode() == Mode::own) {
      if (is_time_for_ring(*entry, state))
        make_ring(fd, *entry, state);
      else
        entry->exchange(state, {state.word + cost_of(state, bytes)});
      state = entry->load();
    }
    if (state.mode() == Mode::ring) {
      pthread_testcancel();
      const std::size_t done = write_by_ring(fd, buffer, bytes, &offset);
      return complete(fd, done, bytes, [&](std::size_t from) {
        return pwrite_here(fd, behind(buffer, from), bytes - from, offset + static_cast<off_t>(from));
      });
    }
  }
  if (appends_by_ring(fd)) return_offset(fd);
  return counted_write(fd, WHERRY_NEXT(pwrite, fd, buffer, bytes, offset));
}

}  // namespace wherry::preload
