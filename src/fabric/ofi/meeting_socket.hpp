// SPDX-License-Identifier: Apache-2.0
// The TCP socket of a rendezvous: its options, and non-blocking transfer of whole messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"

namespace wherry::fabric::ofi {

/// Makes the connection end if the peer's host or the link fails: the kernel probes the host each second, and ends the
/// connection after `timeout` without an answer. The kernel of a peer that is merely stopped still answers.
void watch_host(int socket, std::chrono::milliseconds timeout) noexcept;

/// Sends a message at once: all messages of a rendezvous fit into the socket's buffer. False if the connection is dead,
/// or if the peer does not read.
bool send_whole(int socket, std::span<const std::byte> message) noexcept;

template <class Message>
bool send_message(int socket, const Message& message) noexcept {
  return send_whole(socket, std::as_bytes(std::span(&message, 1)));
}

/// Receives one message of a known size, in parts.
class Incoming {
 public:
  enum class State : std::uint8_t { partial, complete, ended };

  /// Begins a message of that size.
  void expect(std::size_t bytes);
  /// Reads what has arrived, and nothing beyond the message. `ended`: the connection is over; see error().
  State receive(int socket);

  /// Returns the bytes received so far.
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(buffer_).first(received_); }
  /// Returns why the connection is over: an errno value, or 0 if the peer has closed it.
  [[nodiscard]] int error() const { return error_; }
  /// Returns the message, which must be complete.
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
  /// Sets the time. The maximum of the clock: never.
  void set(Clock::time_point when) noexcept;

 private:
  UniqueFd fd_;
};

/// Makes an epoll descriptor. Throws Error(EMFILE).
UniqueFd make_poller();
/// Adds a socket to an epoll descriptor, or changes its events. False, with errno, if the kernel has no memory.
bool poll_for(int poller, int socket, std::uint32_t events, std::uint64_t id) noexcept;

}  // namespace wherry::fabric::ofi
