// SPDX-License-Identifier: Apache-2.0
// The implementation of wherry::Stream: the connection, and one object for each direction. Each direction has cache
// lines of its own, because two threads may use them.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>

#include <wherry/stream.hpp>

#include "base/fork_generation.hpp"
#include "fabric/fabric.hpp"
#include "stream/connection_state.hpp"
#include "stream/receiver.hpp"
#include "stream/sender.hpp"
#include "stream/statistics.hpp"
#include "window/space.hpp"

namespace wherry {

/// Result of a call on a closed or moved-from stream.
inline constexpr Result kClosed = Result::failure(EBADF);

/// Makes one buffer an iovec, for the calls that take several buffers.
inline iovec buffer_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

class Stream::Impl {
 public:
  /// @param peers_capacity  capacity of the ring in the peer's segment, checked by the handshake
  /// @param own_capacity    capacity of the ring in this side's segment
  Impl(std::unique_ptr<fabric::Connection> connection, Address local, std::size_t peers_capacity,
       std::size_t own_capacity, std::string_view fabric);
  ~Impl();

  const Origin origin;
  std::unique_ptr<fabric::Connection> connection;
  std::unique_ptr<window::Space> windows;  ///< if both sides want them
  Address local;
  statistics::Record counters;
  stream::ConnectionState connection_state;
  alignas(64) stream::Sender sender;
  alignas(64) stream::Receiver receiver;
};

}  // namespace wherry
