// SPDX-License-Identifier: Apache-2.0
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
      // Then the peer's monitor may be told of something that it has received already.
    }
  }

  /// The options of both ends.
  static wherry::StreamOptions options(Int_t window) {
    return {.ring_bytes = window > 0 ? static_cast<std::size_t>(window) : 0, .windows = true};
  }

  /// Whether there are windows.
  [[nodiscard]] bool shares() const { return own_sent != nullptr && stream.is_open(); }
  void has_sent(std::size_t bytes) {
    if (own_sent != nullptr && bytes != 0) own_sent->add(bytes);
  }

  wherry::Stream stream;
  std::unique_ptr<wherry::root::OwnSent> own_sent;  ///< null: there is no memory to be shown
  wherry::root::PeersSent peers_sent;
  std::uint64_t received = 0;                      ///< bytes of the stream
  wherry::root::MessageSlotGenerations own_slots;  ///< made when the first large message has come
  wherry::root::PeersMessageSlots peers_slots;
  bool blocking = true;
  bool polled = false;  ///< the descriptor was given out
};

/// What TSocket's functions return for errors.
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
