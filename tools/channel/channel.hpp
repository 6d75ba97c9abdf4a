// SPDX-License-Identifier: Apache-2.0
//
// The transports of ship, collect and pipe: a Wherry stream (wherry://NODE:PORT), or plain TCP (tcp://HOST:PORT) for
// comparison.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <wherry/error.hpp>

#include "channel/wait_notice.hpp"

namespace wherry::tools {

/// The process at the other end, confirmed by the operating system where the transport allows it. Otherwise pid is 0
/// and node is empty.
struct ChannelPeer {
  std::string address;
  std::int64_t pid = 0;
  std::optional<std::uint32_t> node;
};

/// A connected byte stream whose buffers are filled and read in place. Over a Wherry stream `space` is the receiver's
/// ring itself, and `peek` shows the bytes that arrived there.
///
/// Threads: one thread may send while another receives.
///
/// Errors: a broken connection throws wherry::Error: EPIPE or ECONNRESET when the peer is gone, ECANCELED after
/// `cancel`.
class Channel {
 public:
  /// The longest wait; empty: without limit.
  using Limit = std::optional<std::chrono::milliseconds>;
  static constexpr Limit kForever{};

  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  /// Blocks until there is space, and returns at least one byte of it. Valid until the next sending call.
  virtual std::span<std::byte> space() = 0;
  /// Submits the first `bytes` of `space`. They are sent in batches, at the latest by `flush`.
  virtual void wrote(std::size_t bytes) = 0;
  virtual void flush() = 0;
  /// Flushes; the peer then receives the end. A peer that is gone by then is not an error: only its own end shows
  /// whether it read everything.
  virtual void finish_sending() = 0;

  /// The bytes that have arrived, in place. Empty: the end, or no bytes within the limit. Valid until the next
  /// receiving call. The peer may still change these bytes: copy bytes that are checked before they are used.
  virtual std::span<const std::byte> peek(Limit limit) = 0;
  /// Consumes the first `bytes` of those that `peek` showed.
  virtual void took(std::size_t bytes) = 0;

  /// Makes every blocked and later call fail with ECANCELED. The peer's calls fail with ECONNRESET or EPIPE; it sees no
  /// end. May be called from any thread.
  virtual void cancel() = 0;
  [[nodiscard]] virtual const ChannelPeer& peer() const = 0;

  /// Copies all of `bytes` into the space, waiting for it as needed.
  void write(std::span<const std::byte> bytes);
  /// Fills `bytes`. Returns the number of bytes read; fewer only at the end.
  std::size_t read(std::span<std::byte> bytes);
  /// The same, but returns as soon as any bytes were read.
  std::size_t read_some(std::span<std::byte> bytes);
};

/// A port that accepts connections.
class ChannelListener {
 public:
  ChannelListener() = default;
  ChannelListener(const ChannelListener&) = delete;
  ChannelListener& operator=(const ChannelListener&) = delete;
  virtual ~ChannelListener() = default;

  /// Null if no peer waits (a wake-up of the descriptor may be spurious).
  virtual std::unique_ptr<Channel> try_accept() = 0;
  /// Readable while a peer waits.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// The address for connectors, with a free port resolved.
  [[nodiscard]] virtual std::string address() const = 0;
};

/// Throws wherry::Error.
std::unique_ptr<ChannelListener> listen_channel(const std::string& address);
/// Waits up to `wait` for a listener. Over a Wherry stream, acceptance may also take `wait`, and at least
/// WHERRY_CONNECT_TIMEOUT. Throws wherry::Error.
/// @param program  the program's name in the notice that tells a terminal what the program waits for
std::unique_ptr<Channel> connect_channel(const std::string& program, const std::string& address,
                                         std::chrono::duration<double> wait);

// The two transports.
inline constexpr std::string_view kTcpScheme = "tcp://";
std::unique_ptr<ChannelListener> listen_tcp(const std::string& address);
std::unique_ptr<Channel> connect_tcp(const std::string& address, WaitNotice::Clock::time_point listener_by,
                                     WaitNotice& notice);
std::unique_ptr<ChannelListener> listen_stream(const std::string& address);
std::unique_ptr<Channel> connect_stream(const std::string& address, WaitNotice::Clock::time_point listener_by,
                                        WaitNotice::Clock::time_point accepted_by, WaitNotice& notice);

}  // namespace wherry::tools
