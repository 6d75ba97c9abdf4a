// SPDX-License-Identifier: Apache-2.0
// A bell that this side sleeps on: an epoll set of a connected socket. It is readable when the peer rings, by a packet;
// when this side does, for which it is enough that the socket is writable; and when the peer is gone. The peer holds
// neither the set nor this end of the socket, so nothing that it does to its own end makes a call here block.
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
    end,  ///< the peer has closed its end, or does what no peer does
  };

  /// Throws Error(EMFILE, ENFILE, ENOMEM, ENOSPC).
  OwnBell();

  /// Before anything else: the socket, which the caller keeps open as long as the bell.
  /// @param rings  the peer rings on it; otherwise only its end is heard
  /// Throws Error(ENOSPC, ENOMEM).
  void listen_to(int socket, bool rings);

  /// Makes it readable. From any thread.
  void notify() noexcept;
  /// Takes what was rung. By the thread that sleeps on it.
  Heard silence() noexcept;
  /// For one that is readable and was not rung: a forked child rang its own copy, which has the set in common with
  /// this.
  void hide_own_ring() noexcept;
  /// Sleeps until it is readable, or may be. False: the deadline passed.
  [[nodiscard]] bool await(const Deadline& deadline) const noexcept;
  /// Readable while it was rung or the peer is gone. At the first call, by the thread that sleeps on it, it takes a
  /// number that select() can name.
  int descriptor() noexcept;
  /// The socket alone, which this side's own rings do not show on. From now on the peer's rings do not show on
  /// `descriptor`. For a bell that the peer does not ring: `descriptor`. By the thread that sleeps on it.
  int event_descriptor() noexcept;
  /// Whether `silence` looks at the socket: it sees the peer's end then.
  [[nodiscard]] bool rings() const noexcept { return rings_; }

 private:
  void show_own_ring(bool rung) noexcept;

  std::mutex mutex_;  ///< for the number of the set, and for whether this side rings
  UniqueFd set_;
  int socket_ = -1;
  std::uint32_t heard_events_ = 0;  ///< of the socket, by the set
  bool rings_ = false;
  bool socket_alone_ = false;  ///< the set does not show the peer's rings
  bool rung_ = false;
  bool shown_ = false;
};

/// The bell of the peer's that listens to the other end of a socket. By the thread that rings it.
class PeerBell {
 public:
  /// Rings it. False: the kernel has no memory for it.
  bool notify(int socket) noexcept;

 private:
  /// Rings between two looks at how many the peer has not taken. A look is a system call; without any, a peer that asks
  /// again and again and takes none would fill the socket, and this side's own rings would not show on it.
  static constexpr unsigned kMostUnchecked = 8;

  unsigned unchecked_ = 0;  ///< rings since the last look that found few untaken, at most kMostUnchecked
};

}  // namespace wherry::fabric::shm
