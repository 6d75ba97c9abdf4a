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

/// What a FramedStream received. `message` is set if the result is `moved`; it may be empty.
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

/// A stream that carries messages: what one send sent, one receive receives, whole, and in place: nothing is copied out
/// of the ring. Both sides must use it, each in its direction. Bytes may be sent and received on the stream before, and
/// after `release`.
///
/// A message is at most max_send() bytes, half the ring less 8, so that it has room in one piece; a larger one is
/// refused with EMSGSIZE. In the ring it takes 8 bytes more than it has, rounded up to 8.
///
/// Threads, fork and errors: as for Stream. Besides, receiving fails with EPROTO when what arrived are no messages, and
/// nothing that was sent with a failed or would_block result was sent in part.
class FramedStream {
 public:
  class Impl;

  FramedStream() noexcept;
  /// Takes an open stream over.
  explicit FramedStream(Stream stream);
  FramedStream(FramedStream&&) noexcept;
  FramedStream& operator=(FramedStream&&) noexcept;
  /// Closes as `close` does.
  ~FramedStream();

  [[nodiscard]] bool is_open() const noexcept;
  /// For addresses, counters, descriptors, a Poller, cancel and finish_sending (flush first). Must be open. Not for
  /// sending or receiving, nor to be assigned to or moved from.
  [[nodiscard]] Stream& stream() noexcept;
  /// Flushes, lets the last message go, and returns the stream.
  Stream release() noexcept;
  /// Flushes, then closes as Stream::close does. With a limit it fails as that, or with what kept collected messages
  /// from being sent: EPIPE, the peer has closed or died; ECANCELED.
  void close() noexcept;
  Result close(Timeout timeout) noexcept;

  // Sending ---------------------------------------------------------------------------------------------------------

  /// Blocks until the whole message was accepted. After a timeout, or EMSGSIZE, nothing of it was.
  [[nodiscard]] Result send(std::span<const std::byte> message, Timeout timeout = {}) noexcept;
  /// One message out of several pieces.
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

  /// Room for a message of `bytes` in the peer's ring (or what stands for it); with null data if there is none now or
  /// there can be none. Write into it, then `commit`. Valid until the next call that sends.
  [[nodiscard]] std::span<std::byte> reserve(std::size_t bytes) noexcept;
  /// Sends the first `bytes` of what `reserve` returned. EINVAL if nothing, or less, is reserved.
  [[nodiscard]] Result commit(std::size_t bytes) noexcept;
  /// Blocks until `reserve(bytes)` will succeed.
  Result wait_writable(std::size_t bytes, Timeout timeout = {}) noexcept;

  /// Holds messages back until `flush`, to publish many small ones at once: the receiver's cache line is written, and a
  /// receiver that sleeps is woken, once for all. What is held is also published when it comes to 64 KiB or a quarter
  /// of the ring, and before a send waits for space. Flush before waiting for an answer.
  void hold() noexcept;
  /// Publishes what is held, and holds no more. A failure is that of the next send too.
  Result flush() noexcept;

  // Receiving -------------------------------------------------------------------------------------------------------

  /// Blocks until there is a message. It is shown where it lies in the ring, until the next call that receives; a
  /// hostile peer may still change it: copy what is checked before it is used.
  Received receive(Timeout timeout = {}) noexcept;
  /// After a report of a Poller or the receive descriptor. The last message is still in the ring and makes the stream
  /// ready, until this would block.
  Received try_receive() noexcept;

  /// The largest message that can be sent, and received: the two directions may differ.
  [[nodiscard]] std::size_t max_send() const noexcept;
  [[nodiscard]] std::size_t max_receive() const noexcept;

 private:
  void send_collected() noexcept;

  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry
