// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include <wherry/stream.hpp>

namespace wherry {

/// The result of a receive of a FramedStream. `message` is set if `result` is `moved`; it may be empty.
struct Received {
  Result result;
  std::span<const std::byte> message;

  /// True if there is a message.
  explicit operator bool() const { return result.ok(); }
  /// The message as text.
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(message.data()), message.size()};
  }
};

/// A stream of messages. One receive returns exactly what one send sent, in place: no bytes are copied out of the ring.
/// Both sides must use a FramedStream, each in its direction. The stream may carry plain bytes before it, and after
/// `release`.
///
/// A message is at most max_send() bytes: half the ring, minus 8, so that it fits in one piece. A larger message is
/// refused with EMSGSIZE. In the ring a message takes 8 bytes more than its size, rounded up to a multiple of 8.
///
/// Threads, fork and errors: as for Stream. Also, receiving fails with EPROTO if the received bytes are not messages.
/// If a send returns failed or would_block, no part of its message was sent.
class FramedStream {
 public:
  class Impl;

  FramedStream() noexcept;
  /// Takes over an open stream.
  explicit FramedStream(Stream stream);
  FramedStream(FramedStream&&) noexcept;
  FramedStream& operator=(FramedStream&&) noexcept;
  /// Closes as `close` does.
  ~FramedStream();

  [[nodiscard]] bool is_open() const noexcept;
  /// The underlying stream, for addresses, counters, descriptors, a Poller, cancel and finish_sending (flush first).
  /// This object must be open. Do not send, receive, assign to it or move from it.
  [[nodiscard]] Stream& stream() noexcept;
  /// Flushes, consumes the last message, and returns the stream.
  Stream release() noexcept;
  /// Flushes, then closes as Stream::close does. With a timeout it returns the result of that close; or, if held
  /// messages could not be sent, their error: EPIPE: the peer has closed or died; ECANCELED.
  void close() noexcept;
  Result close(Timeout timeout) noexcept;

  // Sending ---------------------------------------------------------------------------------------------------------

  /// Blocks until the whole message was accepted. After a timeout or EMSGSIZE no part of it was sent.
  [[nodiscard]] Result send(std::span<const std::byte> message, Timeout timeout = {}) noexcept;
  /// The same for one message in several pieces.
  [[nodiscard]] Result send(std::span<const iovec> pieces, Timeout timeout = {}) noexcept;
  [[nodiscard]] Result try_send(std::span<const std::byte> message) noexcept;
  [[nodiscard]] Result try_send(std::span<const iovec> pieces) noexcept;
  /// The same for text, a pointer and a number of bytes, objects and contiguous ranges, as for Stream.
  [[nodiscard]] Result send(std::string_view message, Timeout timeout = {}) noexcept {
    return send(plain::bytes_at(message.data(), message.size()), timeout);
  }
  [[nodiscard]] Result try_send(std::string_view message) noexcept {
    return try_send(plain::bytes_at(message.data(), message.size()));
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result send(const T* data, Size bytes, Timeout timeout = {}) noexcept {
    return send(plain::bytes_at(data, bytes), timeout);
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result try_send(const T* data, Size bytes) noexcept {
    return try_send(plain::bytes_at(data, bytes));
  }
  template <plain::Source Data>
  [[nodiscard]] Result send(const Data& message, Timeout timeout = {}) noexcept {
    return send(plain::bytes_of(message), timeout);
  }
  template <plain::Source Data>
  [[nodiscard]] Result try_send(const Data& message) noexcept {
    return try_send(plain::bytes_of(message));
  }

  /// Reserves space for a message of `bytes` in the peer's ring, or in the staging ring of a put fabric. Write into it,
  /// then `commit`. data() is null if there is no space now, or never can be. Valid until the next call that sends.
  [[nodiscard]] std::span<std::byte> reserve(std::size_t bytes) noexcept;
  /// Sends the first `bytes` of the reserved space. EINVAL if fewer bytes, or none, are reserved.
  [[nodiscard]] Result commit(std::size_t bytes) noexcept;
  /// Blocks until `reserve(bytes)` will succeed.
  Result wait_writable(std::size_t bytes, Timeout timeout = {}) noexcept;

  /// Holds messages back until `flush`, to publish many small messages at once. One publication writes the receiver's
  /// cache line once, and wakes a sleeping receiver once. Held messages are also published when they reach 64 KiB or a
  /// quarter of the ring, and before a send waits for space. Flush before waiting for an answer.
  void hold() noexcept;
  /// Publishes the held messages, and ends the holding. The next send returns a failure of it too.
  Result flush() noexcept;

  // Receiving -------------------------------------------------------------------------------------------------------

  /// Blocks until there is a message. The message is read in place, in the ring, and valid until the next call that
  /// receives. A hostile peer may still change it: copy bytes that are checked before they are used.
  Received receive(Timeout timeout = {}) noexcept;
  /// The same without blocking, for use after a report of a Poller or of the receive descriptor. Call it until it would
  /// block: until then the last message stays in the ring, and the stream is reported as ready.
  Received try_receive() noexcept;

  /// The sizes of the largest message that can be sent, and that can be received. The two may differ.
  [[nodiscard]] std::size_t max_send() const noexcept;
  [[nodiscard]] std::size_t max_receive() const noexcept;

 private:
  void send_collected() noexcept;

  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
