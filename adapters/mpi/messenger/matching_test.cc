// SPDX-License-Identifier: Apache-2.0
#include "matching.hpp"

#include <gtest/gtest.h>

#include "messenger.hpp"

namespace wherry::mpi {
namespace {

class MatchingTest : public testing::Test {
 protected:
  MatchingTest() {
    near_.address = 3;
    far_.address = 4;
  }

  Receive& post(std::uint64_t source, std::uint64_t tag, std::uint64_t ignore = 0) {
    Receive& receive = receives_.take();
    receive.source = source;
    receive.tag = tag;
    receive.ignore = ignore;
    receive.tagged = true;
    receive.context = &receive;
    matching_.post(receive);
    return receive;
  }

  Unexpected& keep(Link& from, std::uint64_t tag) {
    Unexpected& message = messages_.take();
    message.from = &from;
    message.envelope = with_tag(tag);
    matching_.keep(message);
    return message;
  }

  static Envelope with_tag(std::uint64_t tag) { return {tag, 0, 0, true, false}; }

  static Pattern wanted(std::uint64_t source, std::uint64_t tag) {
    return {.source = source, .tag = tag, .ignore = 0, .tagged = true};
  }

  Link near_, far_;
  Pool<Receive> receives_;
  Pool<Unexpected> messages_;
  Matching matching_;
};

TEST_F(MatchingTest, AMessageGoesToTheFirstReceiveThatFits) {
  post(kAnySource, 8);
  Receive& first = post(kAnySource, 7);
  post(kAnySource, 7);
  EXPECT_EQ(matching_.receive_for(with_tag(7), 3), &first);
}

TEST_F(MatchingTest, IgnoredBitsOfTheTagDoNotCount) {
  Receive& receive = post(kAnySource, 0x10, 0x0f);
  EXPECT_EQ(matching_.receive_for(with_tag(0x1c), 3), &receive);
  EXPECT_EQ(matching_.receive_for(with_tag(0x2c), 3), nullptr);
}

TEST_F(MatchingTest, AReceiveOfOneSourceTakesFromNoOther) {
  Receive& receive = post(4, 7);
  EXPECT_EQ(matching_.receive_for(with_tag(7), 3), nullptr);
  EXPECT_EQ(matching_.receive_for(with_tag(7), 4), &receive);
  EXPECT_EQ(matching_.receive_for(with_tag(7), kAnySource), nullptr);  // of a sender without a name yet
}

TEST_F(MatchingTest, UntaggedMessagesIgnoreTaggedReceives) {
  post(kAnySource, 0);
  Envelope untagged = with_tag(0);
  untagged.tagged = false;
  EXPECT_EQ(matching_.receive_for(untagged, 3), nullptr);
}

TEST_F(MatchingTest, AReceiveGetsTheFirstMessageThatFits) {
  keep(far_, 7);
  Unexpected& first = keep(near_, 7);
  keep(near_, 7);
  EXPECT_EQ(matching_.message_for(wanted(3, 7)), &first);
}

TEST_F(MatchingTest, AMessageIsFoundByItsSourceOnceThatHasAName) {
  Link nameless;
  Unexpected& message = keep(nameless, 7);
  EXPECT_EQ(matching_.message_for(wanted(5, 7)), nullptr);
  nameless.address = 5;
  EXPECT_EQ(matching_.message_for(wanted(5, 7)), &message);
}

TEST_F(MatchingTest, AClaimedMessageIsForItsContextAlone) {
  Unexpected& message = keep(near_, 7);
  int context = 0;
  int other = 0;
  matching_.claim(message, &context);
  EXPECT_EQ(matching_.message_for(wanted(kAnySource, 7)), nullptr);
  EXPECT_EQ(matching_.take_claimed(&other), nullptr);
  EXPECT_EQ(matching_.take_claimed(&context), &message);
  EXPECT_EQ(matching_.take_claimed(&context), nullptr);
}

TEST_F(MatchingTest, APostedReceiveIsFoundByItsContext) {
  Receive& receive = post(kAnySource, 7);
  EXPECT_EQ(matching_.posted_with(&receive), &receive);
  receive.unlink();
  EXPECT_EQ(matching_.posted_with(&receive), nullptr);
}

TEST(PoolNumber, OfAnObjectThatWasGivenBackFindsNothing) {
  Pool<Receive> pool;
  Receive& receive = pool.take();
  const std::uint64_t number = Pool<Receive>::number_of(receive);
  EXPECT_EQ(pool.find(number), &receive);
  pool.give(receive);
  EXPECT_EQ(pool.find(number), nullptr);
  pool.take();
  EXPECT_EQ(pool.find(number), nullptr);
  EXPECT_EQ(pool.find(UINT64_MAX), nullptr);
}

TEST(EndpointName, IsTheSameAsTextAndAsBytes) {
  Name name = Name::of(Address::parse("wherry+shm://3:4711"));
  EXPECT_EQ(name.text().size(), kNameBytes - 1);
  EXPECT_EQ(Name::parse(name.text()), name);
  EXPECT_EQ(Name::parse_bytes(name.bytes().data()), name);
  EXPECT_TRUE(name.is_on_this_host());
  EXPECT_NE(Name::of(Address::parse("wherry+shm://3:4711")), name);
}

TEST(EndpointName, ThatIsNoneIsRefused) {
  const std::string good = Name::of(Address::parse("wherry+shm://3:4711")).text();
  EXPECT_FALSE(Name::parse(""));
  EXPECT_FALSE(Name::parse("fi_shm://1"));
  EXPECT_FALSE(Name::parse(good + "x"));
  EXPECT_FALSE(Name::parse(good.substr(0, good.size() - 1) + "9"));  // of another version
}

TEST(BuffersOfOneRequest, AreScatteredOverAsOne) {
  std::array<char, 3> first{};
  std::array<char, 4> second{};
  const std::array<iovec, 2> ranges{iovec{first.data(), 3}, iovec{second.data(), 4}};
  const Buffers buffers{std::span<const iovec>(ranges)};
  const std::string text = "abcdefghij";
  buffers.scatter(1, std::as_bytes(std::span(text)));
  EXPECT_EQ(std::string(first.data(), 3), std::string("\0ab", 3));
  EXPECT_EQ(std::string(second.data(), 4), "cdef");  // what is beyond the end is dropped
  EXPECT_EQ(buffers.shortened(5).bytes(), 5U);
}

}  // namespace
}  // namespace wherry::mpi
