// SPDX-License-Identifier: Apache-2.0
#include "reads.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "descriptors.hpp"
#include "next.hpp"
#include "served.hpp"
#include "sharing.hpp"
#include "vfork.hpp"

namespace wherry::preload {
namespace {

/// The call after which a descriptor is looked at. A small file that is read once pays nothing.
constexpr std::uint64_t kCallsBefore = 2;

/// Looks at the file of a descriptor that has been read often enough. True: the state is another now.
bool try_tracking(int fd, Entry& entry, State before) {
  switch (track(fd, entry, before)) {
    case Tracking::later:
      break;
    case Tracking::never:
      entry.exchange(before, before.with(Mode::never, 0));
      break;
    case Tracking::tracked:
      if (before.mode() == Mode::own) {
        own_offset(fd, entry, before, 0);
      } else {
        entry.exchange(before, before.with(Mode::shared, 0));
      }
      break;
  }
  return entry.load().word != before.word;
}

/// A call of the kernel's that uses its offset, of a descriptor of mode `own`: counted while it is inside.
template <typename Call>
auto call_inside(Entry& entry, State before, Call call) -> decltype(call()) {
  const std::uint64_t generation = before.generation();
  const auto result = call();
  const int error = errno;
  State now = entry.load();
  while (now.generation() == generation && now.mode() == Mode::own &&
         !entry.exchange(now, {now.word - State::kInside})) {
  }
  errno = error;
  return result;
}

/// Counts this thread in, and its call if it reads. False: the state is another.
bool go_inside(Entry& entry, State before, bool reads) {
  const std::uint64_t call = reads && before.calls() < kCallsBefore ? State::kCall : 0;
  return entry.exchange(before, {before.word + State::kInside + call});
}

ssize_t read_of_kernel(int fd, void* buffer, std::size_t bytes) { return WHERRY_NEXT(read, fd, buffer, bytes); }

}  // namespace

ssize_t read_here(int fd, void* buffer, std::size_t bytes) {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr || in_vfork_child()) return read_of_kernel(fd, buffer, bytes);
  while (true) {
    State state = entry->load();
    switch (state.mode()) {
      case Mode::user: {
        const ssize_t result = read_tracked(fd, *entry, state, buffer, bytes, static_cast<off_t>(state.number()));
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
        if (state.calls() >= kCallsBefore && state.inside() == 0 && try_tracking(fd, *entry, state)) continue;
        if (!go_inside(*entry, state, true)) continue;
        return call_inside(*entry, state, [&] { return read_of_kernel(fd, buffer, bytes); });
      case Mode::moving:
        settled(*entry);
        continue;
      case Mode::unknown:
      case Mode::shared:
      case Mode::never:
        return read_of_kernel(fd, buffer, bytes);
    }
  }
}

ssize_t pread_here(int fd, void* buffer, std::size_t bytes, off_t offset) {
  Entry* const entry = entry_of(fd);
  if (entry != nullptr && !in_vfork_child()) {
    State state = entry->load();
    if ((state.mode() == Mode::unknown || state.mode() == Mode::own) && state.inside() == 0) {
      if (state.calls() < kCallsBefore) {
        entry->exchange(state, {state.word + State::kCall});
      } else if (try_tracking(fd, *entry, state)) {
        state = entry->load();
      }
    }
    if (state.tracked()) return read_tracked(fd, *entry, state, buffer, bytes, offset);
  }
  return WHERRY_NEXT(pread64, fd, buffer, bytes, offset);
}

off_t lseek_here(int fd, off_t offset, int whence) {
  Entry* const entry = entry_of(fd);
  if (entry == nullptr || in_vfork_child()) return WHERRY_NEXT(lseek64, fd, offset, whence);
  while (true) {
    State state = entry->load();
    if (state.mode() == Mode::moving) {
      settled(*entry);
    } else if (state.mode() == Mode::own) {
      if (!go_inside(*entry, state, false)) continue;
      return call_inside(*entry, state, [&] { return WHERRY_NEXT(lseek64, fd, offset, whence); });
    } else if (state.mode() != Mode::user) {
      return WHERRY_NEXT(lseek64, fd, offset, whence);
    } else {
      // The kernel's offset is nobody's: what it says of the others is where they lead.
      const auto now = static_cast<off_t>(state.number());
      off_t wanted = offset;
      if (whence == SEEK_CUR && __builtin_add_overflow(now, offset, &wanted)) {
        errno = EOVERFLOW;
        return -1;
      }
      if (whence != SEEK_SET && whence != SEEK_CUR) wanted = WHERRY_NEXT(lseek64, fd, offset, whence);
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
