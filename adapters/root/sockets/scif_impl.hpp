// SPDX-License-Identifier: Apache-2.0
// The state of a TScif: its stream, and the windows that both sides share for large messages and byte counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>

#include <wherry/stream.hpp>

#include "TScif.h"
#include "message_slots.hpp"
#include "sent.hpp"

class TScif::Impl {
 public:
  explicit Impl(wherry::Stream connected) : stream(std::move(connected)) {
    try {
      own_sent = std::make_unique<wherry::root::OwnSent>(stream.windows());
    } catch (const std::exception&) {
      // Without the page, the peer's TMonitor may report a socket whose bytes were already received.
    }
  }

  /// Returns the stream options of connectors and listeners.
  static wherry::StreamOptions options(Int_t window) {
    return {.ring_bytes = window > 0 ? static_cast<std::size_t>(window) : 0, .windows = true};
  }

  /// Whether this side could register windows and the stream is open.
  [[nodiscard]] bool shares() const { return own_sent != nullptr && stream.is_open(); }
  void has_sent(std::size_t bytes) {
    if (own_sent != nullptr && bytes != 0) own_sent->add(bytes);
  }

  wherry::Stream stream;
  std::unique_ptr<wherry::root::OwnSent> own_sent;  ///< null: its page could not be registered
  wherry::root::PeersSent peers_sent;
  std::uint64_t received = 0;                      ///< bytes of the stream received so far
  wherry::root::MessageSlotGenerations own_slots;  ///< created when the first large message has arrived
  wherry::root::PeersMessageSlots peers_slots;
  bool blocking = true;
  bool polled = false;  ///< the descriptor was given out
};

/// Return values of TSocket's functions for errors.
inline constexpr Int_t kFailed = -1;
inline constexpr Int_t kNoOutOfBand = -3;
inline constexpr Int_t kWouldBlock = -4;
inline constexpr Int_t kReset = -5;

inline std::span<const std::byte> bytes_of(const void* buffer, Int_t bytes) {
  return {static_cast<const std::byte*>(buffer), static_cast<std::size_t>(bytes)};
}
inline std::span<std::byte> bytes_of(void* buffer, Int_t bytes) {
  return {static_cast<std::byte*>(buffer), static_cast<std::size_t>(bytes)};
}
