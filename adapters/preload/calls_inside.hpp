// SPDX-License-Identifier: Apache-2.0
//
// Kernel calls that use the kernel's offset, on descriptors of mode `own`.
#pragma once

#include <cerrno>
#include <cstdint>

#include "descriptors.hpp"
#include "sharing.hpp"

namespace wherry::preload {

/// Counts this thread as inside, and adds to the cost. False if the state has changed.
inline bool go_inside(Entry& entry, State before, std::uint64_t cost) {
  return entry.exchange(before, {before.word + State::kInside + cost});
}

/// Makes such a call. It was counted by go_inside(), and is until it returns.
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

/// Makes such a call whatever another thread has made of the mode. `cost` is added to the descriptor's.
template <typename Call>
auto call_at_kernels_offset(int fd, Entry& entry, std::uint64_t cost, Call call) -> decltype(call()) {
  while (true) {
    const State state = settled(entry);
    if (state.mode() == Mode::user || state.mode() == Mode::ring) {
      share_offset(fd);
    } else if (state.mode() != Mode::own) {
      return call();
    } else if (go_inside(entry, state, cost)) {
      return call_inside(entry, state, call);
    }
  }
}

}  // namespace wherry::preload
