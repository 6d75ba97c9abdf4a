// SPDX-License-Identifier: Apache-2.0
//
// What ship, collect and pipe move their bytes over: a Wherry stream (wherry://NODE:PORT), or plain TCP
// (tcp://HOST:PORT), which is there to compare with.
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

/// The process at the other end. The operating system vouches for it where the transport can tell; pid 0 and no node
/// where it cannot.
struct ChannelPeer {
  std::string address;
  std::int64_t pid = 0;
  std::optional<std::uint32_t> node;
};

/// A connected byte stream with buffers that are filled and read in place: over a Wherry stream `space` is the
/// receiver's ring itself, and `peek` shows what arrived there.
///
/// One thread may send while another receives. A connection that breaks throws wherry::Error: EPIPE or ECONNRESET when
/// the peer is gone, ECANCELED after `cancel`.
class Channel {
 public:
  /// How long to wait at most; empty: without limit.
  using Limit = std::optional<std::chrono::milliseconds>;
  static constexpr Limit kForever{};

  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  /// Blocks until there is space, and returns at least one byte of it. Valid until the next sending call.
  virtual std::span<std::byte> space() = 0;
  /// The first `bytes` of `space` were filled. They are sent when that is worth while, at the latest by `flush`.
  virtual void wrote(std::size_t bytes) = 0;
  virtual void flush() = 0;
  /// Flushes; the peer then receives the end. It is no error if the peer is gone by then: only its own end tells
  /// whether it read everything.
  virtual void finish_sending() = 0;

  /// What has arrived, in place. Empty: the end, or nothing within the limit. Valid until the next receiving call. The
  /// peer may still change these bytes: copy what is checked before it is used.
  virtual std::span<const std::byte> peek(Limit limit) = 0;
  /// The first `bytes` of `peek` are done with.
  virtual void took(std::size_t bytes) = 0;

  /// Makes every blocked and later call fail with ECANCELED, and the peer's with ECONNRESET or EPIPE: it sees no end.
  /// From any thread.
  virtual void cancel() = 0;
  [[nodiscard]] virtual const ChannelPeer& peer() const = 0;

  /// Copies all of `bytes` into the space, waiting for it as needed.
  void write(std::span<const std::byte> bytes);
  /// Fills `bytes`; returns how many it got, fewer only at the end.
  std::size_t read(std::span<std::byte> bytes);
  /// The same, but returns as soon as it got any.
  std::size_t read_some(std::span<std::byte> bytes);
};

/// A port that is listened on.
class ChannelListener {
 public:
  ChannelListener() = default;
  ChannelListener(const ChannelListener&) = delete;
  ChannelListener& operator=(const ChannelListener&) = delete;
  virtual ~ChannelListener() = default;

  /// Null when no connector waits (a wake-up of the descriptor may prove spurious).
  virtual std::unique_ptr<Channel> try_accept() = 0;
  /// Readable while a connector waits.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Where it listens, with a free port resolved: what a connector writes.
  [[nodiscard]] virtual std::string address() const = 0;
};

/// Throws wherry::Error.
std::unique_ptr<ChannelListener> listen_channel(const std::string& address);
/// Waits for a listener until `wait` has passed; as long, and at least WHERRY_CONNECT_TIMEOUT, may a Wherry stream that
/// was begun take to be accepted. Throws wherry::Error.
/// @param program  names the program in a line that tells a terminal what it waits for
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
