// SPDX-License-Identifier: Apache-2.0
// A bell that this side sleeps on. The peer rings it by a packet on a connected socket, this side by itself: both make
// one epoll set readable, and so does the peer's end. The peer holds neither the set nor this end of the socket, so
// nothing that it does to its own end makes a call here block.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/unique_fd.hpp"
#include "fabric/fabric.hpp"

namespace wherry::fabric::shm {

class OwnBell {
 public:
  enum class Heard : std::uint8_t {
    nothing,
    ring,
    end,  ///< the peer has closed its end, or does what no peer does
  };

  /// Throws Error(EMFILE, ENFILE, ENOMEM, ENOSPC).
  OwnBell();

  /// The peer rings on this socket from now on, which the caller keeps open as long as the bell. Throws Error(ENOSPC,
  /// ENOMEM).
  void listen_to(int socket);

  /// Makes it readable. From any thread.
  void ring() noexcept;
  /// Takes what was rung. By the thread that sleeps on it.
  Heard silence() noexcept;
  /// Sleeps until it is readable, or may be. False: the deadline passed.
  [[nodiscard]] bool await(const Deadline& deadline) const noexcept;
  /// Readable while it was rung or the peer is gone. At the first call, by the thread that sleeps on it, it takes a
  /// number that select() can name.
  int descriptor() noexcept;

 private:
  void show_own_ring(bool rung) noexcept;

  const std::shared_ptr<const UniqueFd> readable_;  ///< always
  std::mutex mutex_;                                ///< for the number of the set, and for whether this side rings
  UniqueFd set_;
  int socket_ = -1;
  bool rung_ = false;
  bool shown_ = false;
};

/// Rings the bell of the peer's that listens to the other end.
void ring_peer(int socket) noexcept;

}  // namespace wherry::fabric::shm
