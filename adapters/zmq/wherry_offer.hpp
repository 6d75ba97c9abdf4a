// SPDX-License-Identifier: Apache-2.0
//
// What one end of a tcp or ipc connection tells the other about Wherry. It is in the filler of the ZMTP greeting: 31
// bytes that peers without Wherry send as zeros and ignore.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace zmq {

/// The greeting of ZMTP 3: signature (10 bytes), version (2), mechanism (20), as-server (1), filler.
constexpr std::size_t wherry_greeting_bytes = 64;
constexpr std::size_t wherry_filler_begin = 33;

/// The filler: "wherry" and version 1 (7 bytes), node and port, most significant byte first (2 and 2), token (16),
/// place (4).
struct wherry_offer_t {
  static constexpr std::size_t bytes = wherry_greeting_bytes - wherry_filler_begin;
  using token_t = std::array<unsigned char, 16>;

  std::uint16_t node = 0;
  std::uint16_t port = 0;   ///< 0 at the end that connects, which does not listen
  std::uint32_t place = 0;  ///< wherry_place() of this end; if it differs, both ends stay on the socket
  token_t token{};          ///< random; a connection to the port must show it, so that no other is taken for it

  /// Makes an offer with a random token. Its port is 0 if the system has no random numbers.
  static wherry_offer_t random(std::uint16_t node, std::uint16_t port, std::uint32_t place);

  [[nodiscard]] std::array<unsigned char, bytes> encode() const;
  /// Returns nothing if it is no offer of this version.
  static std::optional<wherry_offer_t> decode(std::span<const unsigned char, bytes> filler);

  [[nodiscard]] std::string address() const;  ///< wherry://NODE:PORT
};

}  // namespace zmq
