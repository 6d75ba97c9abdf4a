// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/word_slots.hpp"

#include <gtest/gtest.h>

namespace wherry::fabric::ofi {
namespace {

constexpr std::size_t kSegment = 4096;

layout::LinkMessage slot(std::uint32_t number, std::uint64_t offset, std::uint64_t bell) {
  return message_of(layout::LinkKind::slot, number, offset, bell);
}

TEST(WordSlots, WhatOneSideSendsTheOtherFinds) {
  OwnSlots own;
  PeerSlots theirs;
  for (const SendQueue::Word word : {SendQueue::Word{8, 5, Bell::data}, {8, 6, Bell::space}, {kSegment - 8, 7, {}}}) {
    EXPECT_FALSE(own.data_of(word)) << "before the peer was told";
    const auto message = own.define(word);
    ASSERT_TRUE(message);
    EXPECT_FALSE(own.define(word)) << "a second time";
    ASSERT_TRUE(theirs.add(*message, kSegment));
    const auto data = own.data_of(word);
    ASSERT_TRUE(data);
    const PeerSlots::Slot* const found = theirs.find(layout::slot_of(*data));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->offset, word.at);
    EXPECT_EQ(found->bell, word.bell);
    EXPECT_EQ(layout::slot_value(*data), word.value);
  }
}

TEST(WordSlots, AValueThatDoesNotFitAndAPlaceTooManyGoInMessages) {
  OwnSlots own;
  EXPECT_FALSE(own.define({0, layout::kMostSlotValue + 1, {}}));
  for (std::uint64_t i = 0; i < layout::kSlots; ++i) ASSERT_TRUE(own.define({8 * i, 0, {}})) << i;
  EXPECT_FALSE(own.define({8 * layout::kSlots, 0, {}}));
  EXPECT_FALSE(own.data_of({8 * layout::kSlots, 0, {}}));
  EXPECT_FALSE(own.data_of({0, layout::kMostSlotValue + 1, {}}));
}

TEST(WordSlots, APeersPlacesOutsideTheSegmentAndOutOfTurnAreRefused) {
  PeerSlots theirs;
  for (const std::uint64_t offset :
       {std::uint64_t{kSegment}, std::uint64_t{kSegment - 4}, std::uint64_t{4}, UINT64_MAX, UINT64_MAX - 7})
    EXPECT_FALSE(theirs.add(slot(0, offset, 0), kSegment)) << offset;
  EXPECT_FALSE(theirs.add(slot(0, 0, 3), kSegment)) << "a bell that there is not";
  EXPECT_FALSE(theirs.add(slot(1, 0, 0), kSegment)) << "the second before the first";
  EXPECT_EQ(theirs.find(0), nullptr);
  for (std::uint32_t i = 0; i < layout::kSlots; ++i) ASSERT_TRUE(theirs.add(slot(i, 0, 0), kSegment)) << i;
  EXPECT_FALSE(theirs.add(slot(layout::kSlots, 0, 0), kSegment)) << "one too many";
}

}  // namespace
}  // namespace wherry::fabric::ofi
