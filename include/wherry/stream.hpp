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
  std::uint64_t bytes_sent_split = 0;  ///< of bytes_sent: copied by both sides at once, straight between the buffers
  std::uint64_t bytes_received_split = 0;  ///< of bytes_received: the same
  std::uint64_t sends = 0;                 ///< publications: a large send is published in pieces
  std::uint64_t receives = 0;              ///< calls that moved bytes out of the ring
  std::uint64_t send_sleeps = 0;           ///< times this side went to sleep for space
  std::uint64_t receive_sleeps = 0;        ///< times this side went to sleep for bytes
  std::uint64_t wakes = 0;                 ///< times this side woke the peer (one system call each)
};

/// How long a call may block. Zero: not at all. nanoseconds::max(): without limit. Empty: a connect blocks for the
/// configured time (WHERRY_CONNECT_TIMEOUT), every other call without limit.
using Timeout = std::optional<std::chrono::nanoseconds>;

/// What a plain pointer may point to where a number of bytes follows: anything but iovec, whose number would be taken
/// for bytes (for several buffers: std::span(buffers, count)).
template <class T>
concept Memory = !std::same_as<std::remove_cv_t<T>, iovec>;

/// Options of a stream's own receiving side. The peer chooses its own.
struct StreamOptions {
  /// Capacity in bytes of the ring this side receives into; rounded up to a power of two within [4 KiB, 1 GiB].
  /// 0: the configured one (WHERRY_RING).
  std::size_t ring_bytes = 0;
  /// This side wants `Stream::windows`. Costs a mapping of 324 KiB (whose pages cost memory once they are used), and
  /// what the process registers is within reach of the peer.
  bool windows = false;
};

/// A connected, ordered, reliable byte stream made of two rings: one in this side's memory, which the peer writes and
/// this side reads, and one in the peer's, the other way round.
///
/// Threads: one thread may send while another receives. Two threads must not send, or receive, at once. `cancel` may be
/// called from any thread at any time while the stream exists. A stream may be moved to another thread between calls.
///
/// Ownership: buffers passed in belong to the caller and may be reused when the call returns. Bytes that a send
/// accepted are in the receiver's memory (or, on fabrics without shared memory, on their way there): they survive this
/// side's death once they have arrived, and `close` waits until they have.
///
/// Errors: moving data never throws and never allocates. Result::error is EPIPE when the peer will receive no more (it
/// closed or died; sending), ECONNRESET when the peer died or closed before it finished sending (receiving, after
/// everything it had published was delivered), EPROTO when the peer wrote nonsense into shared memory, ECANCELED after
/// `cancel`, ETIMEDOUT when a timeout passed, EBADF on a closed or moved-from stream. Sending or receiving nothing
/// moves nothing, at once.
///
/// Cancellation: moving data and closing are no cancellation points (pthread_cancel); `cancel` ends a wait.
///
/// Fork: the stream stays the parent's; a child that destroys its copy ends nothing. But a child that keeps it open
/// without exec keeps the connection alive when the parent dies.
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

  /// Blocks until all of `bytes` was accepted. On failure Result::bytes tells how many were, and later sends fail too.
  Result send(std::span<const std::byte> bytes) noexcept;
  /// The same for several buffers, as if they were one.
  Result send(std::span<const iovec> buffers) noexcept { return send(buffers, Timeout()); }
  /// After a timeout Result::bytes bytes were accepted, and the next send must begin behind them.
  [[nodiscard]] Result send(std::span<const std::byte> bytes, Timeout timeout) noexcept;
  [[nodiscard]] Result send(std::span<const iovec> buffers, Timeout timeout) noexcept;
  /// Blocks until at least one byte is there; moves at most `buffer.size()`. End: the peer finished.
  [[nodiscard]] Result receive(std::span<std::byte> buffer) noexcept;
  [[nodiscard]] Result receive(std::span<std::byte> buffer, Timeout timeout) noexcept;
  [[nodiscard]] Result receive(std::span<const iovec> buffers, Timeout timeout = {}) noexcept;
  /// Blocks until `buffer` is full. At the end, or on failure, Result::bytes tells how many bytes were moved before.
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

  // The same for objects of trivially copyable types and contiguous ranges of them (plain.hpp): a struct, a vector or a
  // span of double, an array. An array of char is text where it is sent, up to its zero, and room where it is received
  // into. A result counts bytes, and may end within an object: receive_all fills what it gets.

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

  /// Space in the peer's ring (or what stands for it), at most `want` bytes, at least one if the result is not empty.
  /// Never blocks; use `wait_writable` when it is empty. Write into it, then `commit` the first n bytes.
  /// Valid until the next call that sends.
  [[nodiscard]] Regions reserve(std::size_t want) noexcept;
  /// Publishes the first `bytes` of what `reserve` returned. EINVAL if that is more than was reserved.
  [[nodiscard]] Result commit(std::size_t bytes) noexcept;
  /// What has arrived, in place, at most `want` bytes. Never blocks; empty if nothing is there (use `wait_readable`).
  /// A hostile peer may still change these bytes: copy what is checked before it is used. Valid until `consume`.
  [[nodiscard]] ConstRegions peek(std::size_t want = SIZE_MAX) noexcept;
  /// Gives the first `bytes` of what `peek` showed back to the sender as space. EINVAL if that is more than was shown.
  [[nodiscard]] Result consume(std::size_t bytes) noexcept;

  // Waiting ---------------------------------------------------------------------------------------------------------

  /// Blocks until `peek` would show something (moved; Result::bytes is how much), the end, or a failure.
  Result wait_readable(Timeout timeout = {}) noexcept;
  /// Never blocks, and moves nothing: what `wait_readable` would return, or Result::would_block(). That counts as a
  /// `try_receive` that would block.
  [[nodiscard]] Result try_readable() noexcept;
  /// Blocks until `reserve` would give at least min(`bytes`, half of send_capacity()) (moved; Result::bytes is how
  /// much), or a failure.
  Result wait_writable(std::size_t bytes = 1, Timeout timeout = {}) noexcept;
  /// A descriptor for poll, select and epoll that stays readable while bytes, the end or a failure wait to be received;
  /// a `try_receive` that would block silences it. It may be readable with nothing to receive, a few times in a row.
  /// Belongs to the stream. -1 on a closed stream. Throws Error if the process is out of descriptors.
  int receive_descriptor();
  /// A second descriptor, which becomes readable when space returns after a `try_send` that would block or took only a
  /// part, and when the peer is gone; the next `try_send`, even of nothing, silences it. Otherwise as above.
  int send_descriptor();
  /// For an event loop that calls `try_receive` until it would block: the descriptor that the peer itself rings. Waking
  /// by it takes less time than by `receive_descriptor`, an epoll set. Readable once bytes, the end or a failure came
  /// after a `try_receive` that would block, until the next that would; silent about what was there before. Always
  /// writable. Poll it level-triggered: the peer need not ring again while a ring waits here, so an edge-triggered set
  /// may miss new bytes. From the first call on `receive_descriptor` tells only of `cancel` and the peer's end, and at
  /// the latter's epoll may report EPOLLHUP here. Belongs to the stream. -1 on a closed stream. Throws Error if the
  /// process is out of descriptors.
  int receive_event_descriptor();
  /// The same for space: readable once space returned after a `try_send` or `reserve` that found none, or the peer is
  /// gone, until the next `try_send`, even of nothing. A `reserve` that gives nothing because sending has failed is not
  /// told of: `commit(0)` then returns the failure.
  int send_event_descriptor();
  /// Makes the send descriptor readable, if there is one, until the next `try_send`: for an event loop in which this
  /// stream has had its turn and has more to send.
  void raise_send_descriptor() noexcept;

  // Windows ---------------------------------------------------------------------------------------------------------

  /// Memory of each side's that the other reads, writes and maps. Throws Error: EBADF on a closed stream, ENOTSUP
  /// unless both sides asked for windows (StreamOptions::windows).
  [[nodiscard]] Windows windows();

  // Bounding --------------------------------------------------------------------------------------------------------

  /// Sends as if the peer's ring held `bytes`, at least 4 KiB, if it holds more: so much, at most, lies there unread.
  /// EINVAL once something was sent. Messages copied straight between two buffers are not concerned. A peer says what
  /// it has read after each quarter of its ring and whenever it finds nothing more: with less than a quarter this side
  /// may wait until it looks again.
  [[nodiscard]] Result limit_unread(std::size_t bytes) noexcept;

  // Ending ----------------------------------------------------------------------------------------------------------

  /// Half-close: the peer receives everything sent so far, then the end. Receiving goes on. Sending now fails with
  /// EPIPE.
  Result finish_sending() noexcept;
  /// Finishes sending, waits until everything accepted is in the receiver's memory, and frees the stream. Does not wait
  /// for the peer to read. On a network it waits for 10 s at most, and then logs that bytes may be lost.
  void close() noexcept;
  /// The same with a limit, and says what became of the bytes. Failed: ETIMEDOUT, the peer's side has not acknowledged
  /// all of them, and may lose the rest; ECONNRESET, it is known to be gone. The stream is freed either way.
  Result close(Timeout timeout) noexcept;
  /// Makes every blocked and later call on this stream fail with ECANCELED. From any thread.
  void cancel() noexcept;

  // Addresses and counters -------------------------------------------------------------------------------------------

  [[nodiscard]] const Address& local() const noexcept;          ///< this side
  [[nodiscard]] const Peer& peer() const noexcept;              ///< the other side
  [[nodiscard]] StreamCounters counters() const noexcept;       ///< this side's, from any thread
  [[nodiscard]] std::size_t receive_capacity() const noexcept;  ///< bytes of the ring this side receives into
  /// Bytes of the ring the peer receives into, or what limit_unread says.
  [[nodiscard]] std::size_t send_capacity() const noexcept;

 private:
  friend class Poller;
  friend class FramedStream;

  std::unique_ptr<Impl> impl_;
};

/// A port that is listened on. After a fork it is the parent's still: the child has a copy and does not accept, for a
/// connection is made in two halves, and each process would take one. One that was not listened on
/// (default-constructed, moved from) throws Error(EBADF).
class Listener {
 public:
  class Impl;
  Listener() noexcept;
  explicit Listener(std::unique_ptr<Impl> impl) noexcept;
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  /// Frees the port; connectors that wait are refused.
  ~Listener();

  /// True if this object holds a port.
  [[nodiscard]] bool is_open() const noexcept { return impl_ != nullptr; }

  /// Blocks until a connector comes. Throws Error (ETIMEDOUT when a timeout passed).
  Stream accept(Timeout timeout = {});
  /// Empty when no connector waits.
  std::optional<Stream> try_accept();
  /// Readable while a connector may wait, also when try_accept has just returned none: it drops strangers a few at a
  /// time. A wake-up may prove spurious. -1 if nothing is held.
  [[nodiscard]] int descriptor() const noexcept;
  /// The address bound, with `*` resolved.
  [[nodiscard]] const Address& local() const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

/// A connection attempt under way: it waits for a listener, and completes when the peer accepts. Without one
/// (default-constructed, moved from) try_finish throws Error(EBADF). After a fork it is the parent's.
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

  /// Never blocks. Empty while there is no listener, or no answer, for which there is no time limit. Without a listener
  /// it tries again, if that is due. Throws Error: ECONNREFUSED (there was no listener in time; or the listener closed,
  /// died or refused), EPROTO (what answered is no stream of this version), EMFILE.
  std::optional<Stream> try_finish();
  /// The same, and blocks until then. Throws also Error(ETIMEDOUT). `timeout` empty: the configured one.
  Stream finish(Timeout timeout = {});
  /// Becomes readable when try_finish has something to do. The same until the attempt is over. -1 if nothing is held.
  [[nodiscard]] int descriptor() const noexcept;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Listens. Throws Error: EADDRINUSE, EADDRNOTAVAIL (not this process's node), EINVAL.
Listener listen(std::string_view address, StreamOptions options = {});
/// Connects and blocks until the peer accepts. While there is no listener it tries again, 1 to 100 ms apart, so the
/// listener may start later. `timeout` empty: the configured one (WHERRY_CONNECT_TIMEOUT, 10 s); zero: one attempt.
/// Throws Error as start_connect and Connecting::try_finish do: ECONNREFUSED if there was no listener before the
/// timeout; and ETIMEDOUT if the listener did not accept.
Stream connect(std::string_view address, StreamOptions options = {}, Timeout timeout = {});
/// The same with the default options, for a duration or a Timeout.
template <std::convertible_to<Timeout> Limit>
  requires(!std::convertible_to<Limit, StreamOptions>)
Stream connect(std::string_view address, Limit timeout) {
  return connect(address, StreamOptions(), Timeout(timeout));
}
/// Starts to connect and returns at once. `wait` is how long the attempt waits for a listener: empty, the configured
/// time (WHERRY_CONNECT_TIMEOUT); zero, not at all. Throws Error: ECONNREFUSED (no listener there, and `wait` is zero),
/// EACCES (another user holds the name), EINVAL, EMFILE.
Connecting start_connect(std::string_view address, StreamOptions options = {}, Timeout wait = {});

}  // namespace wherry
