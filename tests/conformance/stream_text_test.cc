// SPDX-License-Identifier: Apache-2.0
// What a program's first lines use: text, pointers with a size, results as conditions, handles that are filled later.
// That these calls compile, and mean one thing each, is half of the claim.
#include <array>
#include <cerrno>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

class StreamText : public StreamTest {};

TEST_P(StreamText, TextIsSentAsItStands) {
  Streams ends = connect_pair();
  const std::string text = "a string";
  EXPECT_EQ(ends.connector.send("a literal, ").bytes, 11U);
  EXPECT_EQ(ends.connector.send(text).bytes, 8U);
  EXPECT_EQ(ends.connector.send(std::string_view(", a view"), kTimeout).bytes, 8U);
  EXPECT_EQ(ends.connector.try_send("!").bytes, 1U);
  char buffer[64] = {};
  EXPECT_EQ(ends.acceptor.receive_all(buffer, 28, kTimeout).bytes, 28U);
  EXPECT_STREQ(buffer, "a literal, a string, a view!");
}

TEST_P(StreamText, APointerIsFollowedByANumberOfBytes) {
  Streams ends = connect_pair();
  const std::array<int, 2> numbers{1, 2};
  EXPECT_EQ(ends.connector.send(numbers.data(), sizeof numbers).bytes, sizeof numbers);
  EXPECT_EQ(ends.connector.send(static_cast<const void*>(numbers.data()), 4, kTimeout).bytes, 4U);
  EXPECT_EQ(ends.connector.try_send(&numbers[1], sizeof(int)).bytes, sizeof(int));
  std::array<int, 5> got{};
  EXPECT_EQ(ends.acceptor.receive_all(got.data(), 8, kTimeout).bytes, 8U);
  void* const rest = &got[2];
  EXPECT_EQ(ends.acceptor.receive_all(rest, 4, kTimeout).bytes, 4U);
  EXPECT_EQ(ends.acceptor.receive(&got[3], sizeof(int), kTimeout).bytes, sizeof(int));
  EXPECT_TRUE(ends.acceptor.try_receive(&got[4], sizeof(int)).would_block());
  EXPECT_EQ(got, (std::array<int, 5>{1, 2, 1, 2, 0}));
}

template <class S>
concept TakesBuffersByPointer = requires(S stream, const iovec* buffers) { stream.send(buffers, 2); } ||
                                requires(S stream, iovec* buffers) { stream.receive(buffers, 2); };
static_assert(!TakesBuffersByPointer<Stream>, "the two would be taken for bytes");

TEST_P(StreamText, AResultIsTrueWhileBytesArrive) {
  Streams ends = connect_pair();
  ends.connector.send("abc");
  ends.connector.finish_sending();
  std::string text;
  std::array<char, 2> buffer{};
  while (const Result got = ends.acceptor.receive(buffer.data(), buffer.size(), kTimeout)) {
    text.append(buffer.data(), got.bytes);
  }
  EXPECT_EQ(text, "abc");
}

TEST_P(StreamText, AMessageIsReadAsText) {
  Streams ends = connect_pair();
  FramedStream sender(std::move(ends.connector));
  FramedStream receiver(std::move(ends.acceptor));
  EXPECT_TRUE(sender.send("a message", kTimeout));
  EXPECT_TRUE(sender.try_send(""));
  EXPECT_EQ(receiver.receive(kTimeout).text(), "a message");
  const Received empty = receiver.receive(kTimeout);
  EXPECT_TRUE(empty);
  EXPECT_EQ(empty.text(), "");
  sender.close();
  EXPECT_FALSE(receiver.receive(kTimeout));
}

TEST_P(StreamText, AnAddressIsPrintedAsItIsWritten) {
  const Listener listener = listen(address());
  std::ostringstream text;
  text << listener.local();
  EXPECT_EQ(text.str(), listener.local().to_string());
  EXPECT_EQ(Address::parse(text.str()), listener.local());
}

TEST_P(StreamText, HandlesMayBeFilledLater) {
  Listener listener;
  Connecting connecting;
  Stream accepted;
  EXPECT_FALSE(listener.is_open());
  EXPECT_FALSE(connecting.is_open());
  listener = listen(address());
  connecting = start_connect(listener.local().to_string());
  EXPECT_TRUE(listener.is_open());
  EXPECT_TRUE(connecting.is_open());
  accepted = listener.accept(kTimeout);
  EXPECT_TRUE(accepted.is_open());
}

TEST_P(StreamText, WhatHoldsNothingSaysSo) {
  Listener listener = listen(address());
  const Listener taken = std::move(listener);
  for (Listener* nothing : {&listener}) {  // NOLINT(bugprone-use-after-move): that is the question
    EXPECT_EQ(error_of([&] { (void)nothing->accept(0ms); }), EBADF);
    EXPECT_EQ(error_of([&] { (void)nothing->try_accept(); }), EBADF);
    EXPECT_EQ(nothing->descriptor(), -1);
    EXPECT_EQ(nothing->local(), Address{});
  }
  Connecting connecting;
  EXPECT_EQ(error_of([&] { (void)connecting.try_finish(); }), EBADF);
  EXPECT_EQ(connecting.descriptor(), -1);
}

// The listener never accepts, so it is the limit that ends each of them.
TEST_P(StreamText, ALimitIsTheSecondArgument) {
  const Listener listener = listen(address());
  const std::string there = listener.local().to_string();
  const Timeout limit = 1ms;
  EXPECT_EQ(error_of([&] { (void)connect(there, 1ms); }), ETIMEDOUT);
  EXPECT_EQ(error_of([&] { (void)connect(there, limit); }), ETIMEDOUT);
  EXPECT_EQ(error_of([&] { (void)connect(there, {}, 1ms); }), ETIMEDOUT);
  EXPECT_EQ(error_of([&] { (void)connect(there, {.ring_bytes = 4096}, 1ms); }), ETIMEDOUT);
  const ScopedEnvironment configured("WHERRY_CONNECT_TIMEOUT", "1");
  EXPECT_EQ(error_of([&] { (void)connect(there); }), ETIMEDOUT);
  EXPECT_EQ(error_of([&] { (void)connect(there, {}); }), ETIMEDOUT);
}

WHERRY_ON_EVERY_FABRIC(StreamText);

}  // namespace
}  // namespace wherry::conformance
