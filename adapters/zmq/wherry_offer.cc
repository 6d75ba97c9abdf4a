// SPDX-License-Identifier: Apache-2.0
#include "wherry_offer.hpp"

#include <sys/random.h>

#include <algorithm>

namespace zmq {
namespace {

constexpr std::array<unsigned char, 7> kMark{'w', 'h', 'e', 'r', 'r', 'y', 1};
constexpr std::size_t kNode = kMark.size();
constexpr std::size_t kPort = kNode + 2;
constexpr std::size_t kToken = kPort + 2;
constexpr std::size_t kPlace = kToken + sizeof(wherry_offer_t::token_t);
static_assert(kPlace + 4 == wherry_offer_t::bytes);

template <class Number>
void put(unsigned char* to, Number number) {
  for (std::size_t i = sizeof number; i-- != 0; number = static_cast<Number>(number >> 8)) {
    to[i] = static_cast<unsigned char>(number & 0xff);
  }
}

template <class Number>
Number get(const unsigned char* from) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; i++) number = static_cast<Number>(number << 8 | from[i]);
  return number;
}

}  // namespace

wherry_offer_t wherry_offer_t::random(std::uint16_t node, std::uint16_t port, std::uint32_t place) {
  wherry_offer_t offer{node, port, place, {}};
  const ssize_t got = ::getrandom(offer.token.data(), offer.token.size(), GRND_NONBLOCK);
  if (got != static_cast<ssize_t>(offer.token.size())) offer.port = 0;
  return offer;
}

std::array<unsigned char, wherry_offer_t::bytes> wherry_offer_t::encode() const {
  std::array<unsigned char, bytes> filler{};
  std::copy(kMark.begin(), kMark.end(), filler.begin());
  put(&filler[kNode], node);
  put(&filler[kPort], port);
  std::copy(token.begin(), token.end(), filler.begin() + kToken);
  put(&filler[kPlace], place);
  return filler;
}

std::optional<wherry_offer_t> wherry_offer_t::decode(std::span<const unsigned char, bytes> filler) {
  if (!std::equal(kMark.begin(), kMark.end(), filler.begin())) return std::nullopt;
  wherry_offer_t offer{
      get<std::uint16_t>(&filler[kNode]), get<std::uint16_t>(&filler[kPort]), get<std::uint32_t>(&filler[kPlace]), {}};
  std::copy_n(filler.begin() + kToken, offer.token.size(), offer.token.begin());
  return offer;
}

std::string wherry_offer_t::address() const { return "wherry://" + std::to_string(node) + ":" + std::to_string(port); }

}  // namespace zmq
