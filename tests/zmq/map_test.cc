// SPDX-License-Identifier: Apache-2.0
#include "wherry_map.hpp"

#include <gtest/gtest.h>

#include "wherry_offer.hpp"

namespace zmq {
namespace {

TEST(ZmqMap, AnItemNamesWhatBeginsWithItAndEndsWhereAPartOfTheEndpointDoes) {
  for (const char* endpoint : {"tcp://127.0.0.1:2000", "tcp://127.0.0.1"})
    EXPECT_TRUE(wherry_maps("tcp://127.0.0.1", endpoint));
  for (const char* endpoint : {"tcp://127.0.0.10:2000", "tcp://127.0.0.2:2000", "ipc://127.0.0.1", ""}) {
    EXPECT_FALSE(wherry_maps("tcp://127.0.0.1", endpoint)) << endpoint;
  }
  EXPECT_TRUE(wherry_maps("tcp://127.0.0.1:2000", "tcp://127.0.0.1:2000"));
  EXPECT_FALSE(wherry_maps("tcp://127.0.0.1:2", "tcp://127.0.0.1:2000"));
  EXPECT_TRUE(wherry_maps("ipc:///run/daq", "ipc:///run/daq/control"));
  EXPECT_FALSE(wherry_maps("ipc:///run/daq", "ipc:///run/daq2"));
}

TEST(ZmqMap, AnItemWithoutAnAddressNamesAllOfItsTransport) {
  EXPECT_TRUE(wherry_maps("tcp://", "tcp://192.168.1.7:2000"));
  EXPECT_TRUE(wherry_maps("ipc://", "ipc://@abstract"));
  EXPECT_TRUE(wherry_maps("ipc://", "ipc://"));
  EXPECT_FALSE(wherry_maps("ipc://", "tcp://127.0.0.1:2000"));
}

TEST(ZmqMap, AnyItemOfTheListWillDoAndEmptyOnesNameNothing) {
  EXPECT_TRUE(wherry_maps("tcp://10.0.0.1,ipc://", "ipc:///x"));
  for (const char* map : {"", ",", ",,tcp://10.0.0.1,"}) EXPECT_FALSE(wherry_maps(map, "tcp://127.0.0.1:1")) << map;
}

TEST(ZmqMap, LocalhostIsTheLoopbackInterfaceByEitherAddress) {
  EXPECT_TRUE(wherry_maps("tcp://localhost", "tcp://127.0.0.1:2000"));
  EXPECT_TRUE(wherry_maps("tcp://localhost:2000", "tcp://[::1]:2000"));
  EXPECT_FALSE(wherry_maps("tcp://localhost:2000", "tcp://127.0.0.1:2001"));
}

TEST(ZmqMap, AnAddressOfIPv4IsTheSameAsASocketOfIPv6CallsIt) {
  for (const char* item : {"tcp://127.0.0.1", "tcp://localhost", "tcp://127.0.0.1:2000", "tcp://"})
    EXPECT_TRUE(wherry_maps(item, "tcp://[::ffff:127.0.0.1]:2000")) << item;
  for (const char* item : {"tcp://127.0.0.2", "tcp://localhost:2001", "tcp://[::1]"})
    EXPECT_FALSE(wherry_maps(item, "tcp://[::ffff:127.0.0.1]:2000")) << item;
  EXPECT_FALSE(wherry_maps("tcp://127.0.0.1", "tcp://[::ffff:127.0.0.1"));
}

TEST(ZmqOffer, WhatIsEncodedIsDecoded) {
  const wherry_offer_t offer = wherry_offer_t::random(7, 51234, 0x01020304);
  const auto decoded = wherry_offer_t::decode(offer.encode());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->address(), "wherry://7:51234");
  EXPECT_EQ(decoded->token, offer.token);
  EXPECT_EQ(decoded->place, 0x01020304U);
  EXPECT_NE(offer.token, wherry_offer_t::random(7, 51234, 0).token);
}

TEST(ZmqOffer, AFillerOfZerosAndOneOfAnotherVersionAreNoOffers) {
  std::array<unsigned char, wherry_offer_t::bytes> filler{};
  EXPECT_FALSE(wherry_offer_t::decode(filler));
  filler = wherry_offer_t{}.encode();
  EXPECT_TRUE(wherry_offer_t::decode(filler));
  filler[6]++;
  EXPECT_FALSE(wherry_offer_t::decode(filler));
}

}  // namespace
}  // namespace zmq
