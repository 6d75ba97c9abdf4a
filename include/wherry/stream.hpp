// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <wherry/require_cxx20.hpp>

#include <sys/uio.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <wherry/address.hpp>
#include <wherry/error.hpp>
#include <wherry/plain.hpp>
#include <wherry/result.hpp>
#include <wherry/window.hpp>

namespace wherry {

/// Counters of one stream since it was connected (each side counts its own).
struct StreamCounters {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent_split = 0;      ///< of bytes_sent: copied by both sides at the same time, past the ring
  std::uint64_t bytes_received_split = 0;  ///< of bytes_received: likewise
  std::uint64_t sends = 0;                 ///< publications: a large send is published in pieces
  std::uint64_t receives = 0;              ///< calls that received bytes
  std::uint64_t send_sleeps = 0;           ///< times this side went to sleep for space
  std::uint64_t receive_sleeps = 0;        ///< times this side went to sleep for bytes
  std::uint64_t wakes = 0;                 ///< times this side woke the peer (one system call each)
};

/// How long a call may block. Zero: not at all. nanoseconds::max(): without limit. Empty: a connect blocks for the
/// configured time (WHERRY_CONNECT_TIMEOUT), every other call without limit.
using Timeout = std::optional<std::chrono::nanoseconds>;

/// The pointee of a (pointer, number of bytes) argument: any type but iovec. A count of iovecs would be taken for
/// bytes; for several buffers use std::span(buffers, count).
template <class T>
concept Memory = !std::same_as<std::remove_cv_t<T>, iovec>;

/// Options of this side of a stream. The peer chooses its own.
struct StreamOptions {
  /// Capacity in bytes of the ring this side receives into, rounded up to a power of two within [4 KiB, 1 GiB]. 0: the
  /// configured capacity (WHERRY_RING).
  std::size_t ring_bytes = 0;
  /// Enables `Stream::windows` on this side. Costs a mapping of 324 KiB, whose pages take memory once they are used.
  /// The peer can access the memory that this process registers.
  bool windows = false;
};

/// A connected, ordered, reliable byte stream. It consists of two rings. One is in this side's memory: the peer writes
/// it and this side reads it. The other is in the peer's memory, for the opposite direction.
///
/// Threads: one thread may send while another receives. Two threads must not send at once, or receive at once. `cancel`
/// may be called from any thread while the stream exists. A stream may be moved to another thread between calls.
///
/// Ownership: buffers passed in belong to the caller and may be reused when the call returns. Bytes that a send
/// accepted are in the receiver's memory, or on their way there on fabrics without shared memory. Once they have
/// arrived they survive this side's death. `close` waits until they have arrived.
///
/// Errors: moving data never throws and never allocates. Values of Result::error:
///   - EPIPE: sending, the peer receives no more because it closed or died;
///   - ECONNRESET: receiving, the peer died or closed before it finished sending, and everything it published was
///     received;
///   - EPROTO: the peer wrote an invalid value into shared memory;
///   - ECANCELED: after `cancel`;
///   - ETIMEDOUT: the timeout passed;
///   - EBADF: the stream is closed or moved-from.
/// A call that sends or receives 0 bytes succeeds at once.
///
/// Cancellation: moving data and closing are not cancellation points (pthread_cancel); `cancel` ends a wait.
///
/// Fork: the stream belongs to the parent. A child that destroys its copy does not end it. A child that keeps its copy
/// open without exec keeps the connection alive when the parent dies.
class Stream {
 public:
  class Impl;

  Stream() noexcept;
  explicit Stream(std::unique_ptr<Impl> impl) noexcept;
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Closes as `close` does.
  ~Stream();

  /// True if this object holds a stream that has not been closed.
  [[nodiscard]] bool is_open() const noexcept { return impl_ != nullptr; }

  // Blocking -------------------------------------------------------------------------------------------------------

  /// Blocks until all of `bytes` was accepted. On failure Result::bytes is the number accepted, and later sends fail
  /// too.
  Result send(std::span<const std::byte> bytes) noexcept;
  /// The same for several buffers, as if they were one.
  Result send(std::span<const iovec> buffers) noexcept { return send(buffers, Timeout()); }
  /// After a timeout Result::bytes is the number of bytes accepted. The next send must continue behind them.
  [[nodiscard]] Result send(std::span<const std::byte> bytes, Timeout timeout) noexcept;
  [[nodiscard]] Result send(std::span<const iovec> buffers, Timeout timeout) noexcept;
  /// Blocks until at least one byte has arrived; moves at most `buffer.size()`. End: the peer finished sending.
  [[nodiscard]] Result receive(std::span<std::byte> buffer) noexcept;
  [[nodiscard]] Result receive(std::span<std::byte> buffer, Timeout timeout) noexcept;
  [[nodiscard]] Result receive(std::span<const iovec> buffers, Timeout timeout = {}) noexcept;
  /// Blocks until `buffer` is full. At the end, or on failure, Result::bytes is the number of bytes moved before it.
  [[nodiscard]] Result receive_all(std::span<std::byte> buffer) noexcept;
  [[nodiscard]] Result receive_all(std::span<std::byte> buffer, Timeout timeout) noexcept;

  // Non-blocking: partial transfers allowed -------------------------------------------------------------------------

  [[nodiscard]] Result try_send(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] Result try_send(std::span<const iovec> buffers) noexcept;
  [[nodiscard]] Result try_receive(std::span<std::byte> buffer) noexcept;
  [[nodiscard]] Result try_receive(std::span<const iovec> buffers) noexcept;

  // The same for text, and for a pointer and a number of bytes --------------------------------------------------------

  Result send(std::string_view text) noexcept { return send(plain::bytes_at(text.data(), text.size())); }
  [[nodiscard]] Result send(std::string_view text, Timeout timeout) noexcept {
    return send(plain::bytes_at(text.data(), text.size()), timeout);
  }
  [[nodiscard]] Result try_send(std::string_view text) noexcept {
    return try_send(plain::bytes_at(text.data(), text.size()));
  }

  template <Memory T, std::integral Size>
  Result send(const T* data, Size bytes) noexcept {
    return send(plain::bytes_at(data, bytes));
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result send(const T* data, Size bytes, Timeout timeout) noexcept {
    return send(plain::bytes_at(data, bytes), timeout);
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result try_send(const T* data, Size bytes) noexcept {
    return try_send(plain::bytes_at(data, bytes));
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result receive(T* buffer, Size bytes) noexcept {
    return receive(plain::place_at(buffer, bytes));
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result receive(T* buffer, Size bytes, Timeout timeout) noexcept {
    return receive(plain::place_at(buffer, bytes), timeout);
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result receive_all(T* buffer, Size bytes) noexcept {
    return receive_all(plain::place_at(buffer, bytes));
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result receive_all(T* buffer, Size bytes, Timeout timeout) noexcept {
    return receive_all(plain::place_at(buffer, bytes), timeout);
  }
  template <Memory T, std::integral Size>
  [[nodiscard]] Result try_receive(T* buffer, Size bytes) noexcept {
    return try_receive(plain::place_at(buffer, bytes));
  }

  // The same for objects of trivially copyable types and contiguous ranges of them (plain.hpp): a struct, a vector or
  // span of double, an array. An array of char is sent as text, up to its terminating zero, but is received into as a
  // whole buffer. A result counts bytes, and may end within an object; receive_all fills the whole object.

  template <plain::Source Data>
  Result send(const Data& data) noexcept {
    return send(plain::bytes_of(data));
  }
  template <plain::Source Data>
  [[nodiscard]] Result send(const Data& data, Timeout timeout) noexcept {
    return send(plain::bytes_of(data), timeout);
  }
  template <plain::Source Data>
  [[nodiscard]] Result try_send(const Data& data) noexcept {
    return try_send(plain::bytes_of(data));
  }
  template <plain::Place Data>
  [[nodiscard]] Result receive(Data&& data) noexcept {
    return receive(plain::place_of<Data>(std::forward<Data>(data)));
  }
  template <plain::Place Data>
  [[nodiscard]] Result receive(Data&& data, Timeout timeout) noexcept {
    return receive(plain::place_of<Data>(std::forward<Data>(data)), timeout);
  }
  template <plain::Place Data>
  [[nodiscard]] Result receive_all(Data&& data) noexcept {
    return receive_all(plain::place_of<Data>(std::forward<Data>(data)));
  }
  template <plain::Place Data>
  [[nodiscard]] Result receive_all(Data&& data, Timeout timeout) noexcept {
    return receive_all(plain::place_of<Data>(std::forward<Data>(data)), timeout);
  }
  template <plain::Place Data>
  [[nodiscard]] Result try_receive(Data&& data) noexcept {
    return try_receive(plain::place_of<Data>(std::forward<Data>(data)));
  }

  // Zero-copy -------------------------------------------------------------------------------------------------------

  /// Reserves space in the peer's ring, or in the staging ring of a put fabric: at most `want` bytes. Write into it,
  /// then `commit` the first n bytes. Never blocks. Empty if there is no space; then use `wait_writable`. Valid until
  /// the next call that sends.
  [[nodiscard]] Regions reserve(std::size_t want) noexcept;
  /// Publishes the first `bytes` of the reserved space. EINVAL if fewer were reserved.
  [[nodiscard]] Result commit(std::size_t bytes) noexcept;
  /// Shows the bytes that have arrived, in place: at most `want`. Never blocks. Empty if none have arrived; then use
  /// `wait_readable`. A hostile peer may still change these bytes: copy bytes that are checked before they are used.
  /// Valid until `consume`.
  [[nodiscard]] ConstRegions peek(std::size_t want = SIZE_MAX) noexcept;
  /// Consumes the first `bytes` of those that `peek` showed: the sender gets them back as credit. EINVAL if `peek`
  /// showed fewer.
  [[nodiscard]] Result consume(std::size_t bytes) noexcept;

  // Waiting ---------------------------------------------------------------------------------------------------------

  /// Blocks until `peek` would show bytes (moved; Result::bytes is how many), the end, or a failure.
  Result wait_readable(Timeout timeout = {}) noexcept;
  /// Returns what `wait_readable` would return, or Result::would_block(). Never blocks, and moves no bytes. A
  /// would_block has the same effect on the descriptors as that of `try_receive`.
  [[nodiscard]] Result try_readable() noexcept;
  /// Blocks until `reserve` would return at least min(`bytes`, half of send_capacity()) bytes (moved; Result::bytes is
  /// the free space), or a failure.
  Result wait_writable(std::size_t bytes = 1, Timeout timeout = {}) noexcept;
  /// A descriptor for poll, select and epoll. It is readable while bytes, the end or a failure can be received. A
  /// `try_receive` that would block silences it. It may be readable without cause a few times in a row. It belongs to
  /// the stream. -1 on a closed stream. Throws Error if the process is out of descriptors.
  int receive_descriptor();
  /// A second descriptor, for space. It becomes readable when space returns after a `try_send` that would block or sent
  /// only a part, and when the peer is gone. The next `try_send`, even of 0 bytes, silences it. Otherwise as
  /// receive_descriptor.
  int send_descriptor();
  /// A descriptor for an event loop that calls `try_receive` until it would block. The peer makes it readable directly,
  /// so a wake-up takes less time than by `receive_descriptor`, which is an epoll set.
  ///   - Readable: from when bytes, the end or a failure arrive after a `try_receive` that would block, until the next
  ///     one that would block. It does not report what had arrived before. It is always writable.
  ///   - Poll it level-triggered. While a notification is unread the peer need not send another, so an edge-triggered
  ///     set may miss new bytes.
  ///   - From the first call on, `receive_descriptor` reports only `cancel` and the peer's end. At the peer's end epoll
  ///     may report EPOLLHUP here.
  /// It belongs to the stream. -1 on a closed stream. Throws Error if the process is out of descriptors.
  int receive_event_descriptor();
  /// The same for space: readable once space returned after a `try_send` or `reserve` that found none, or once the peer
  /// is gone. The next `try_send`, even of 0 bytes, silences it. It does not report a `reserve` that returned no space
  /// because sending has failed: `commit(0)` then returns the failure.
  int send_event_descriptor();
  /// Makes the send descriptor readable, if there is one, until the next `try_send`. For an event loop that ends the
  /// turn of a stream which has more to send.
  void raise_send_descriptor() noexcept;

  // Windows ---------------------------------------------------------------------------------------------------------

  /// The windows of both sides: memory that the other side reads, writes and maps. Throws Error: EBADF on a closed
  /// stream, ENOTSUP unless both sides set StreamOptions::windows.
  [[nodiscard]] Windows windows();

  // Bounding --------------------------------------------------------------------------------------------------------

  /// Limits the unread bytes in the peer's ring to `bytes`, at least 4 KiB; a larger limit than the ring has no effect.
  /// EINVAL if the stream has sent already. Split transfers bypass the ring and are not limited. The peer returns
  /// credit after each quarter of its ring, and whenever it finds the ring empty. With a limit below a quarter this
  /// side may therefore wait until the peer looks again.
  [[nodiscard]] Result limit_unread(std::size_t bytes) noexcept;

  // Ending ----------------------------------------------------------------------------------------------------------

  /// Half-close: the peer receives everything sent so far, then the end. This side may still receive. Later sends fail
  /// with EPIPE.
  Result finish_sending() noexcept;
  /// Finishes sending, waits until all accepted bytes are in the receiver's memory, and frees the stream. Does not wait
  /// for the peer to read. On a network it waits for at most 10 s, and then logs that bytes may be lost.
  void close() noexcept;
  /// The same with a timeout, and returns whether all bytes arrived. Failed: ETIMEDOUT: the peer's side has not
  /// acknowledged all of them, and may lose the rest; ECONNRESET: the peer is gone, and has not said that it has read
  /// all of them, or the stream has windows. The stream is freed in every case.
  Result close(Timeout timeout) noexcept;
  /// Makes every blocked and later call on this stream fail with ECANCELED. May be called from any thread.
  void cancel() noexcept;

  // Addresses and counters -------------------------------------------------------------------------------------------

  [[nodiscard]] const Address& local() const noexcept;          ///< this side
  [[nodiscard]] const Peer& peer() const noexcept;              ///< the other side
  [[nodiscard]] StreamCounters counters() const noexcept;       ///< this side's, from any thread
  [[nodiscard]] std::size_t receive_capacity() const noexcept;  ///< bytes of the ring this side receives into
  /// Capacity in bytes of the ring the peer receives into, or the limit of limit_unread.
  [[nodiscard]] std::size_t send_capacity() const noexcept;

 private:
  friend class Poller;
  friend class FramedStream;

  std::unique_ptr<Impl> impl_;
};

/// A port that accepts connections. A Listener without a port (default-constructed, moved from) throws Error(EBADF).
///
/// Fork: the port belongs to the parent; the child's copy does not accept. A connection is made in two halves, and the
/// two processes would take one each.
class Listener {
 public:
  class Impl;
  Listener() noexcept;
  explicit Listener(std::unique_ptr<Impl> impl) noexcept;
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  /// Frees the port and refuses the peers that wait for accept.
  ~Listener();

  /// True if this object holds a port.
  [[nodiscard]] bool is_open() const noexcept { return impl_ != nullptr; }

  /// Blocks until a peer connects. Throws Error (ETIMEDOUT when the timeout passed).
  Stream accept(Timeout timeout = {});
  /// Never blocks. Empty if no peer waits.
  std::optional<Stream> try_accept();
  /// Readable while a peer may wait for accept. It may stay readable after a try_accept that returned none, because a
  /// call drops only a few invalid connections. A wake-up may be spurious. -1 if the object holds no port.
  [[nodiscard]] int descriptor() const noexcept;
  /// The address bound, with `*` resolved.
  [[nodiscard]] const Address& local() const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

/// A connection attempt in progress: it waits for a listener, and completes when the peer accepts. An object without an
/// attempt (default-constructed, moved from) throws Error(EBADF) from try_finish. After a fork the attempt belongs to
/// the parent.
class Connecting {
 public:
  class Impl;
  Connecting() noexcept;
  explicit Connecting(std::unique_ptr<Impl> impl) noexcept;
  Connecting(Connecting&&) noexcept;
  Connecting& operator=(Connecting&&) noexcept;
  ~Connecting();

  /// True if this object holds an attempt, completed or not.
  [[nodiscard]] bool is_open() const noexcept { return impl_ != nullptr; }

  /// Completes the attempt without blocking. Empty while there is no listener or no answer. The wait for an answer has
  /// no time limit here. Without a listener it retries when a retry is due. Throws Error: ECONNREFUSED (no listener in
  /// time; or the listener closed, died or refused), EPROTO (the listener is not a stream of this version), EMFILE.
  std::optional<Stream> try_finish();
  /// The same, but blocks until the attempt is over. Also throws Error(ETIMEDOUT). `timeout` empty: the configured one.
  Stream finish(Timeout timeout = {});
  /// Becomes readable when try_finish has something to do. The number stays the same until the attempt is over. -1 if
  /// the object holds no attempt.
  [[nodiscard]] int descriptor() const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Listens. Throws Error: EADDRINUSE, EADDRNOTAVAIL (not this process's node), EINVAL.
Listener listen(std::string_view address, StreamOptions options = {});
/// Connects and blocks until the peer accepts. Without a listener it retries every 1 to 100 ms, so the listener may
/// start later. `timeout` empty: the configured one (WHERRY_CONNECT_TIMEOUT, 10 s); zero: one attempt. Throws Error as
/// start_connect and Connecting::try_finish do: ECONNREFUSED if there was no listener before the timeout. Also
/// ETIMEDOUT if the listener did not accept, or another host has not answered.
Stream connect(std::string_view address, StreamOptions options = {}, Timeout timeout = {});
/// The same with the default options, for a duration or a Timeout.
template <std::convertible_to<Timeout> Limit>
  requires(!std::convertible_to<Limit, StreamOptions>)
Stream connect(std::string_view address, Limit timeout) {
  return connect(address, StreamOptions(), Timeout(timeout));
}
/// Starts to connect and returns at once. `wait` limits how long the attempt waits for a listener. Empty: the
/// configured time (WHERRY_CONNECT_TIMEOUT). Zero: not at all. Throws Error: ECONNREFUSED (no listener, and `wait` is
/// zero; for another host try_finish throws it, which knows later), EACCES (another user holds the name), EINVAL,
/// EMFILE.
Connecting start_connect(std::string_view address, StreamOptions options = {}, Timeout wait = {});

}  // namespace wherry
