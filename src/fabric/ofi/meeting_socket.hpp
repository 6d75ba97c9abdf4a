// SPDX-License-Identifier: Apache-2.0
// The TCP socket of a rendezvous: its settings, and whole messages over it without blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"

namespace wherry::fabric::ofi {

/// The peer's host is asked each second, and the connection ends if nothing was heard of it for that long: a host that
/// is down, a link that is cut. A peer that is merely stopped is answered for by its kernel.
void watch_host(int socket, std::chrono::milliseconds timeout) noexcept;

/// A message takes its place in the socket's buffer at once: none of a rendezvous is longer. False: the connection is
/// dead, or the peer reads nothing.
bool send_whole(int socket, std::span<const std::byte> message) noexcept;

template <class Message>
bool send_message(int socket, const Message& message) noexcept {
  return send_whole(socket, std::as_bytes(std::span(&message, 1)));
}

/// One message of a known size as it comes in.
class Incoming {
 public:
  enum class State : std::uint8_t { partial, complete, ended };

  /// Waits for a message of that size.
  void expect(std::size_t bytes);
  /// Reads what is there, and nothing beyond the message. Ended: the peer has closed, or `error` says why.
  State receive(int socket);

  [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(buffer_).first(received_); }
  [[nodiscard]] int error() const { return error_; }
  /// Of a complete message.
  template <class Message>
  [[nodiscard]] const Message& as() const {
    return *reinterpret_cast<const Message*>(buffer_.data());
  }

 private:
  std::vector<std::byte> buffer_;
  std::size_t received_ = 0;
  int error_ = 0;
};

/// A timer that makes `descriptor()` readable.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  /// Throws Error(EMFILE).
  Timer();
  [[nodiscard]] int descriptor() const { return fd_.get(); }
  /// The clock's last moment: never.
  void set(Clock::time_point when) noexcept;

 private:
  UniqueFd fd_;
};

/// An epoll descriptor. Throws Error(EMFILE).
UniqueFd make_poller();
/// False, with errno: the kernel has no memory for another socket.
bool poll_for(int poller, int socket, std::uint32_t events, std::uint64_t id) noexcept;

}  // namespace wherry::fabric::ofi
