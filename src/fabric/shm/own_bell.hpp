// SPDX-License-Identifier: Apache-2.0
// A bell that this side sleeps on: an epoll set with one connected socket. The set is readable in three cases: the peer
// rings, by a packet; this side rings, by watching for writability, which always holds; or the peer is gone. The peer
// has neither the set nor this end of the socket. So nothing that it does to its own end makes a call here block.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/unique_fd.hpp"
#include "fabric/bell.hpp"

namespace wherry::fabric::shm {

class OwnBell {
 public:
  enum class Heard : std::uint8_t {
    nothing,
    notification,
    end,  ///< the peer has closed its end, or the socket failed
  };

  /// Throws Error(EMFILE, ENFILE, ENOMEM, ENOSPC).
  OwnBell();

  /// Sets the socket. Call it first. The caller keeps the socket open as long as the bell.
  /// @param rings  the peer rings on it; false: the bell shows only the end of the socket
  /// Throws Error(ENOSPC, ENOMEM).
  void listen_to(int socket, bool rings);

  /// Rings the bell: its descriptor becomes readable. Thread-safe.
  void notify() noexcept;
  /// Silences the bell and returns what rang it. Only for the thread that sleeps on it.
  Heard silence() noexcept;
  /// Makes the descriptor unreadable if this side has not rung it. For a bell that a forked child has rung in its copy:
  /// the child shares the epoll set.
  void hide_own_ring() noexcept;
  /// Sleeps until the descriptor is readable. May return early. False after the deadline.
  [[nodiscard]] bool await(const Deadline& deadline) const noexcept;
  /// Returns a descriptor that is readable while the bell is rung or the peer is gone. The first call, which must be
  /// made by the thread that sleeps on it, moves it to a number that select() supports, if one is free.
  int descriptor() noexcept;
  /// Returns the socket alone, which does not show this side's own rings. After that `descriptor` no longer shows the
  /// peer's rings. For a bell that the peer does not ring, returns `descriptor`. Only for the thread that sleeps on it.
  int event_descriptor() noexcept;
  /// Returns whether `silence` looks at the socket, and so sees the peer's end.
  [[nodiscard]] bool rings() const noexcept { return rings_; }

 private:
  void show_own_ring(bool rung) noexcept;

  std::mutex mutex_;  ///< guards the number of the set, and whether this side rings
  UniqueFd set_;
  int socket_ = -1;
  std::uint32_t heard_events_ = 0;  ///< events of the socket that the set always watches
  bool rings_ = false;
  bool socket_alone_ = false;  ///< the set does not show the peer's rings
  bool rung_ = false;
  bool shown_ = false;
};

/// The peer's bell, rung through the other end of its socket. Only for the thread that rings it.
class PeerBell {
 public:
  /// Rings it. False if the kernel has no memory for it.
  bool notify(int socket) noexcept;

 private:
  /// Rings between two checks of how many rings the peer has not taken. A check is a system call. Without checks, a
  /// peer that arms again and again but takes no ring would fill the socket. Then the socket would not be writable, and
  /// this side's own rings would not show.
  static constexpr unsigned kMostUnchecked = 8;

  unsigned unchecked_ = 0;  ///< rings since the last check that found few untaken ones, at most kMostUnchecked
};

}  // namespace wherry::fabric::shm
