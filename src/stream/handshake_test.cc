// SPDX-License-Identifier: Apache-2.0
// Which greetings a side accepts.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "ring/ring.hpp"
#include "stream/handshake.hpp"

namespace wherry::stream {
namespace {

constexpr std::size_t kCapacity = 8192;

struct Case {
  const char* name;
  layout::StreamGreeting greeting;
  std::size_t segment_bytes = layout::kStreamPageBytes + kCapacity;
};

layout::StreamGreeting greeting_with_capacity(std::uint64_t capacity) {
  return {.magic = layout::kStreamMagic,
          .version = layout::kStreamVersion,
          .capacity = capacity,
          .features = 0,
          .most = ring::kMaxCapacity,
          .reserved = {}};
}

Case most_of(std::uint64_t bytes) {
  Case most{"of the peer's ring too little or no power of two", greeting_with_capacity(kCapacity)};
  most.greeting.most = bytes;
  return most;
}

std::vector<Case> wrong_greetings() {
  Case magic{"magic", greeting_with_capacity(kCapacity)};
  magic.greeting.magic ^= 1;
  Case version{"version", greeting_with_capacity(kCapacity)};
  version.greeting.version += 1;
  Case windows{"windows behind the segment's end", greeting_with_capacity(kCapacity)};
  windows.greeting.features = layout::kStreamWindows;
  return {magic,
          version,
          windows,
          most_of(0),
          most_of(ring::kMinCapacity / 2),
          most_of(ring::kMinCapacity + 1),
          {"no capacity", greeting_with_capacity(0)},
          {"no power of two", greeting_with_capacity(kCapacity - 1)},
          {"below the least", greeting_with_capacity(ring::kMinCapacity / 2)},
          {"above the most", greeting_with_capacity(ring::kMaxCapacity * 2)},
          {"overflows with the page", greeting_with_capacity(std::uint64_t{1} << 63)},
          {"larger than the segment", greeting_with_capacity(2 * kCapacity)},
          {"larger than the segment by its page", greeting_with_capacity(kCapacity), kCapacity}};
}

/// A greeting with this change contradicts itself.
bool speaks_this_version(const Case& wrong) {
  return wrong.greeting.magic == layout::kStreamMagic && wrong.greeting.version == layout::kStreamVersion;
}

fabric::Offer offer_with(const Case& wrong) {
  fabric::Offer offer{.segment_bytes = wrong.segment_bytes, .memory = nullptr, .greeting = {}};
  std::memcpy(offer.greeting.data(), &wrong.greeting, sizeof wrong.greeting);
  return offer;
}

TEST(Greeting, AnOfferCarriesTheOwnCapacity) {
  const fabric::Offer offer = offer_of({.own = kCapacity});
  EXPECT_EQ(offer.segment_bytes, layout::kStreamPageBytes + kCapacity);
  layout::StreamGreeting greeting{};
  std::memcpy(&greeting, offer.greeting.data(), sizeof greeting);
  EXPECT_EQ(greeting.magic, layout::kStreamMagic);
  EXPECT_EQ(greeting.version, layout::kStreamVersion);
  EXPECT_EQ(greeting.capacity, kCapacity);
}

TEST(Greeting, AListenerDropsWhoSpeaksSomethingElseAndAcceptsTheNext) {
  for (const Case& wrong : wrong_greetings()) {
    Listener listener = listen("wherry+inproc://*:*");
    const auto stranger = fabric::find("inproc").connect(listener.local(), offer_with(wrong));
    Connecting good = start_connect(listener.local().to_string());
    const Stream accepted = listener.accept();
    EXPECT_TRUE(accepted.is_open());
    EXPECT_TRUE(good.try_finish().has_value()) << wrong.name;
    if (speaks_this_version(wrong)) {
      EXPECT_THROW((void)stranger->try_finish(), Error) << wrong.name;
      continue;
    }
    const auto dropped = stranger->try_finish();
    EXPECT_TRUE(dropped == nullptr || dropped->peer_gone()) << wrong.name;
  }
}

TEST(Greeting, AConnectorRefusesWhatAnswersSomethingElse) {
  for (const Case& wrong : wrong_greetings()) {
    const auto listener = fabric::find("inproc").listen(Address::parse("wherry+inproc://*:*"));
    Connecting connecting = start_connect(listener->local().to_string());
    const auto accepted = listener->try_accept(offer_with(wrong));
    try {
      (void)connecting.try_finish();
      ADD_FAILURE() << wrong.name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code().value(), EPROTO) << wrong.name;
      EXPECT_FALSE(error.advice().empty());
    }
  }
}

}  // namespace
}  // namespace wherry::stream
