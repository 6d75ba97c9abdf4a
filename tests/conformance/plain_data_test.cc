// SPDX-License-Identifier: Apache-2.0
// Objects of trivially copyable types and contiguous ranges of them, sent and received by their bytes. That these calls
// compile is half of the claim; tests/outside/refused has those that must not.
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/conformance/mailbox_pair.hpp"
#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

struct Reading {
  std::uint32_t sensor = 0;
  float values[3] = {};
  bool operator==(const Reading&) const = default;
};
constexpr Reading kReading{.sensor = 7, .values = {1, 2, 3}};

class PlainStream : public StreamTest {};

TEST_P(PlainStream, AStructArrivesAsItWas) {
  Streams ends = connect_pair();
  EXPECT_EQ(ends.connector.send(kReading).bytes, sizeof(Reading));
  EXPECT_EQ(ends.connector.send(kReading, kTimeout).bytes, sizeof(Reading));
  EXPECT_EQ(ends.connector.try_send(std::uint64_t{42}).bytes, 8U);
  std::array<Reading, 2> got{};
  EXPECT_EQ(ends.acceptor.receive_all(got[0]).bytes, sizeof(Reading));
  EXPECT_EQ(ends.acceptor.receive_all(got[1], kTimeout).bytes, sizeof(Reading));
  EXPECT_EQ(got, (std::array{kReading, kReading}));
  std::uint64_t number = 0;
  EXPECT_EQ(ends.acceptor.receive(number, kTimeout).bytes, 8U);
  EXPECT_EQ(number, 42U);
  EXPECT_TRUE(ends.acceptor.try_receive(number).would_block());
}

TEST_P(PlainStream, ARangeOfNumbersArrivesElementForElement) {
  Streams ends = connect_pair();
  const std::vector<double> sent{1.5, 2.5, 3.5};
  EXPECT_EQ(ends.connector.send(sent).bytes, 24U);
  EXPECT_EQ(ends.connector.send(std::span(sent).last(1)).bytes, 8U);
  EXPECT_EQ(ends.connector.try_send(std::array<int, 2>{4, 5}).bytes, 8U);
  std::vector<double> got(5);
  EXPECT_EQ(ends.acceptor.receive_all(std::span(got).first(4), kTimeout).bytes, 32U);
  EXPECT_EQ(got, (std::vector<double>{1.5, 2.5, 3.5, 3.5, 0}));
  int matrix[2][1] = {};
  EXPECT_EQ(ends.acceptor.receive_all(matrix).bytes, 8U);
  EXPECT_EQ(matrix[0][0] + matrix[1][0], 9);
}

TEST_P(PlainStream, ArraysOfCharAreTextWhereSentAndRoomWhereReceived) {
  Streams ends = connect_pair();
  char text[16] = "abc";
  EXPECT_EQ(ends.connector.send(text).bytes, 3U);
  EXPECT_EQ(ends.connector.send(std::vector<char>{'d', '\0'}).bytes, 2U);
  char buffer[16] = {};
  EXPECT_EQ(ends.acceptor.receive_all(std::span(buffer).first(4)).bytes, 4U);
  EXPECT_EQ(ends.acceptor.receive(buffer).bytes, 1U);
  EXPECT_STREQ(buffer, "");
  std::string filled(3, 'x');
  ends.connector.send("yz!");
  EXPECT_EQ(ends.acceptor.receive_all(filled).bytes, 3U);
  EXPECT_EQ(filled, "yz!");
}

TEST_P(PlainStream, ListsOfBuffersAreStillListsOfBuffers) {
  Streams ends = connect_pair();
  char first[] = {'a'}, second[] = {'b', 'c'};
  const std::array<iovec, 2> pieces{iovec{first, 1}, iovec{second, 2}};
  EXPECT_EQ(ends.connector.send(pieces).bytes, 3U);
  EXPECT_EQ(ends.acceptor.receive_all(second).bytes, 2U);
  std::vector<iovec> places{iovec{first, 1}};
  EXPECT_EQ(ends.acceptor.receive(places).bytes, 1U);
  EXPECT_EQ(std::string({first[0], second[0], second[1]}), "cab");
}

TEST_P(PlainStream, AFramedStreamTakesThemAsOneMessage) {
  Streams ends = connect_pair();
  FramedStream sender(std::move(ends.connector));
  FramedStream receiver(std::move(ends.acceptor));
  const std::vector<short> numbers{1, 2, 3};
  EXPECT_EQ(sender.send(kReading, kTimeout).bytes, sizeof(Reading));
  EXPECT_EQ(sender.send(numbers.data(), 2 * sizeof(short)).bytes, 4U);
  EXPECT_EQ(sender.send(numbers.data(), 2U, kTimeout).bytes, 2U);
  EXPECT_EQ(sender.try_send(numbers).bytes, 6U);
  EXPECT_EQ(sender.try_send(numbers.data(), 6).bytes, 6U);
  Received received = receiver.receive(kTimeout);
  ASSERT_EQ(received.message.size(), sizeof(Reading));
  Reading reading;
  std::memcpy(&reading, received.message.data(), sizeof reading);
  EXPECT_EQ(reading, kReading);
  for (const std::size_t bytes : {4U, 2U, 6U, 6U}) EXPECT_EQ(receiver.receive(kTimeout).message.size(), bytes);
}

class PlainMailbox : public MailboxTest {};

TEST_P(PlainMailbox, ObjectsRangesAndTextAreMessages) {
  Mailbox to;
  Mailbox from;
  to.listen(address().to_string());
  const Mailbox::Peer peer = from.connect(where(to).to_string(), kTimeout);
  drive({&from, &to}, [&] { return from.section(peer).outgoing != 0; });
  EXPECT_EQ(from.send(peer, kReading, kTimeout).bytes, sizeof(Reading));
  EXPECT_EQ(from.send(peer, "text", kTimeout).bytes, 4U);
  const std::vector<int> numbers{1, 2, 3};
  EXPECT_EQ(from.send(peer, numbers, kTimeout).bytes, 12U);
  EXPECT_EQ(from.send(peer, numbers.data(), 8, kTimeout).bytes, 8U);
  Mailbox::Peer sender = Mailbox::kNoPeer;
  Reading reading;
  EXPECT_EQ(to.receive(reading, sender, kTimeout).bytes, sizeof(Reading));
  EXPECT_EQ(reading, kReading);
  char text[4] = {};
  EXPECT_EQ(to.receive(text, sender, kTimeout).bytes, 4U);
  EXPECT_EQ(std::string(text, 4), "text");
  std::vector<int> got(3);
  EXPECT_EQ(to.receive(got, sender, kTimeout).bytes, 12U);
  EXPECT_EQ(got, numbers);
  EXPECT_EQ(to.receive(got.data(), 12, sender, kTimeout).bytes, 8U);
  EXPECT_TRUE(to.try_receive(got, sender).would_block());
  EXPECT_TRUE(to.try_receive(got.data(), 12, sender).would_block());
  drive({&from, &to}, [&] { return from.try_send(peer, numbers).ok(); });
  drive({&from, &to}, [&] { return from.try_send(peer, "ok").ok(); });
  drive({&from, &to}, [&] { return from.try_send(peer, numbers.data(), 4).ok(); });
  for (const std::size_t bytes : {12U, 2U, 4U}) EXPECT_EQ(to.receive(got, sender, kTimeout).bytes, bytes);
}

TEST_P(PlainMailbox, AnOutgoingIsAMessageAndNotData) {
  Mailbox to = listening();
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  char bytes[] = {'a', 'b'};
  const iovec piece{bytes, sizeof bytes};
  Mailbox::Outgoing outgoing{.pieces = std::span(&piece, 1), .bytes = sizeof bytes};
  EXPECT_EQ(from.send(peer, outgoing, kTimeout).bytes, 2U);
  Mailbox::Peer sender = Mailbox::kNoPeer;
  char got[8] = {};
  EXPECT_EQ(to.receive(got, sender, kTimeout).bytes, 2U);
  EXPECT_STREQ(got, "ab");
}

WHERRY_ON_EVERY_FABRIC(PlainStream);
WHERRY_ON_EVERY_FABRIC(PlainMailbox);

}  // namespace
}  // namespace wherry::conformance
