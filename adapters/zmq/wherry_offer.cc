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
static_assert(kToken + sizeof(wherry_offer_t::token_t) + 4 == wherry_offer_t::bytes);

void put(unsigned char* place, std::uint16_t number) {
  place[0] = static_cast<unsigned char>(number >> 8);
  place[1] = static_cast<unsigned char>(number & 0xff);
}

std::uint16_t get(const unsigned char* place) { return static_cast<std::uint16_t>(place[0] << 8 | place[1]); }

}  // namespace

wherry_offer_t wherry_offer_t::random(std::uint16_t node, std::uint16_t port) {
  wherry_offer_t offer{node, port, {}};
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
  return filler;
}

std::optional<wherry_offer_t> wherry_offer_t::decode(std::span<const unsigned char, bytes> filler) {
  if (!std::equal(kMark.begin(), kMark.end(), filler.begin())) return std::nullopt;
  wherry_offer_t offer{get(&filler[kNode]), get(&filler[kPort]), {}};
  std::copy_n(filler.begin() + kToken, offer.token.size(), offer.token.begin());
  return offer;
}

std::string wherry_offer_t::address() const { return "wherry://" + std::to_string(node) + ":" + std::to_string(port); }

}  // namespace zmq
