// SPDX-License-Identifier: Apache-2.0
// A hostile peer, which sends a valid hello and then breaks the protocol, beside one that keeps to it.
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "messenger_pair.hpp"

namespace wherry::mpi {
namespace {

constexpr std::uint64_t kHostile = 66;  // its address at b_

PacketHead empty_message() {
  PacketHead head{};
  head.operation = Operation::eager;
  head.flags = kTagged;
  head.tag = 4;
  return head;
}

/// Writes packets by hand into the mailbox of a messenger.
class RawSender {
 public:
  explicit RawSender(const Name& to) {
    mailbox_.listen(Address::parse("wherry+shm://*:*"));
    name_ = Name::of(mailbox_.local());
    peer_ = mailbox_.connect(to.address(), std::chrono::nanoseconds(0));
    introduce(name_, to);
  }

  [[nodiscard]] const Name& name() const { return name_; }

  /// Sends the hello, under this name.
  void introduce(const Name& as, const Name& to) {
    PacketHead head{};
    head.operation = Operation::hello;
    head.data = to.incarnation;
    const auto name = as.bytes();
    add(head, name.data(), name.size());
  }

  /// Sends the next packet, after all that were added before.
  void add(const PacketHead& head, const void* tail, std::size_t bytes) {
    packet_.resize(sizeof(head) + bytes);
    std::memcpy(packet_.data(), &head, sizeof(head));
    if (bytes > 0) std::memcpy(packet_.data() + sizeof(head), tail, bytes);
    piece_ = {packet_.data(), packet_.size()};
    outgoing_ = {.pieces = std::span(&piece_, 1), .bytes = packet_.size()};
  }
  /// Returns true once the packet has left.
  bool push() {
    if (takes_answers) drop_answers();
    if (outgoing_.taken == outgoing_.bytes) return true;
    const Result result = mailbox_.try_send(peer_, outgoing_);
    if (result.failed()) is_closed_ = true;
    if (!result.ok()) mailbox_.progress();
    return outgoing_.taken == outgoing_.bytes;
  }
  [[nodiscard]] bool is_closed() const { return is_closed_; }

  bool takes_answers = false;  ///< and drops them

 private:
  void drop_answers() {
    Mailbox::Piece piece;
    while (mailbox_.try_peek(piece).ok()) mailbox_.consume(piece, piece.bytes.size());
  }

  Mailbox mailbox_;
  Name name_;
  Mailbox::Peer peer_ = Mailbox::kNoPeer;
  std::vector<std::byte> packet_;
  iovec piece_{};
  Mailbox::Outgoing outgoing_;
  bool is_closed_ = false;
};

class HostileSender : public MessengerTest {
 protected:
  HostileSender() { b_.link_to(hostile_.name()).address = kHostile; }

  /// Sends the packet `count` times at most, or until the pair is closed. Returns how often.
  std::size_t flood(const PacketHead& head, const std::string& tail, std::size_t count) {
    testing::internal::CaptureStderr();
    std::size_t sent = 0;
    while (sent < count && !hostile_.is_closed()) {
      if (!hostile_.push()) {
        b_.progress();
        continue;
      }
      hostile_.add(head, tail.data(), tail.size());
      ++sent;
    }
    for (int i = 0; i < 1000 && !hostile_.push(); ++i) b_.progress();
    log_ = testing::internal::GetCapturedStderr();
    return sent;
  }
  std::size_t flood_unasked(std::size_t bytes, std::size_t count) {
    PacketHead head = empty_message();
    head.bytes = bytes;
    return flood(head, std::string(bytes, 'h'), count);
  }
  void expect_closed_by_name() {
    EXPECT_TRUE(hostile_.is_closed());
    EXPECT_NE(log_.find("closed the connection to " + hostile_.name().text() + " (address 66 here)"), std::string::npos)
        << log_;
  }
  /// Whether the connection is closed for the other's messages, too.
  bool is_refused(RawSender& other) {
    for (int i = 0; i < 100'000 && !other.is_closed(); ++i) {
      if (other.push()) other.add(empty_message(), nullptr, 0);
      b_.progress();
    }
    return other.is_closed();
  }
  /// Checks that another peer's messages of two sizes arrive. Their receives are posted before.
  void expect_others_go_on() {
    for (const std::size_t bytes : {std::size_t{5}, std::size_t{1} << 20}) {
      std::string buffer(bytes, ' ');
      at_a_log_.sends.clear();
      ASSERT_EQ(b_.receive(into(buffer)), 0);
      ASSERT_EQ(a_.send(message(std::string(bytes, 'a'))), 0);
      EXPECT_EQ(next_receive().error, 0);
      EXPECT_EQ(buffer, std::string(bytes, 'a'));
      progress_until([&] { return !at_a_log_.sends.empty(); });
    }
  }

  RawSender hostile_{b_.name()};
  std::string log_;
};

constexpr std::size_t kLimit = 192 << 20;  // bytes of memory: far more than is allowed

TEST_F(HostileSender, ThatAnnouncesMoreThanAMessageMayHaveIsClosedAndNamed) {
  PacketHead head = empty_message();
  head.operation = Operation::announce;
  head.pieces = 1;
  head.bytes = (std::uint64_t{1} << 63) + 1;
  const RemotePiece piece{4096, head.bytes};
  std::string table(sizeof piece, '\0');
  std::memcpy(table.data(), &piece, sizeof piece);
  flood(head, table, 1000);
  expect_closed_by_name();
}

TEST_F(HostileSender, ThatSendsUnaskedAfterItWasToldToStopIsClosedAndNamed) {
  settle();
  constexpr std::size_t kBytes = 16 << 10;
  EXPECT_LT(flood_unasked(kBytes, kLimit / kBytes), kLimit / kBytes);
  expect_closed_by_name();
  expect_others_go_on();
}

TEST_F(HostileSender, OfEmptyMessagesIsClosedToo) {
  EXPECT_LT(flood_unasked(0, 2'000'000), 2'000'000U);
  expect_closed_by_name();
  expect_others_go_on();
}

TEST_F(HostileSender, OfAnnouncementsWithoutEndIsClosed) {
  PacketHead head = empty_message();
  head.operation = Operation::announce;
  EXPECT_LT(flood(head, "", 1'200'000), 1'200'000U);
  expect_closed_by_name();
  expect_others_go_on();
}

TEST_F(HostileSender, ThatIsClosedLeavesNothingThatKeepsOthersFromSendingUnasked) {
  settle();
  flood_unasked(16 << 10, kLimit >> 14);
  ASSERT_EQ(a_.send(message(std::string(100, 'a'))), 0);
  settle();
  for (int i = 0; i < 100; ++i) a_.progress();
  at_a_log_.sends.clear();
  ASSERT_EQ(a_.send(message(std::string(100, 'a'))), 0);
  settle();
  EXPECT_EQ(at_a_log_.sends.size(), 2U) << "that of settle(), and the other before any receive";
}

TEST_F(HostileSender, ThatIsClosedFailsTheReceivesThatOnlyItCouldSatisfy) {
  std::string buffer(5, ' ');
  ReceiveRequest request = into(buffer, 77);
  request.source = kHostile;
  ASSERT_EQ(b_.receive(request), 0);
  flood_unasked(16 << 10, kLimit >> 14);
  ASSERT_EQ(at_b_log_.receives.size(), 1U);
  EXPECT_EQ(at_b_log_.receives.front().error, FI_ECONNRESET);
  EXPECT_EQ(at_b_log_.receives.front().source, kHostile);
}

TEST_F(HostileSender, CannotComeBackUnderTheSameName) {
  flood_unasked(16 << 10, kLimit >> 14);
  RawSender again(b_.name());
  again.introduce(hostile_.name(), b_.name());
  EXPECT_TRUE(is_refused(again));
}

TEST_F(HostileSender, CannotUseTheNameOfAnotherConnection) {
  flood_unasked(5, 1);
  RawSender second(b_.name());
  second.introduce(hostile_.name(), b_.name());
  EXPECT_TRUE(is_refused(second));
  std::string buffer(5, ' ');
  ASSERT_EQ(b_.receive(into(buffer, 4)), 0);
  EXPECT_EQ(next_receive().source, kHostile) << "of the connection that was there before";
  EXPECT_FALSE(hostile_.is_closed());
}

TEST_F(HostileSender, WhoseReceiverTakesAllIsNeverClosed) {
  std::string buffer(16 << 10, ' ');
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(b_.receive(into(buffer, 4)), 0);
    flood_unasked(buffer.size(), 1);
  }
  while (at_b_log_.receives.size() < 20'000) {
    hostile_.push();
    b_.progress();
  }
  EXPECT_FALSE(hostile_.is_closed());
}

struct OpenRegion final : Region {};

/// Sends reads of memory that it may read.
class HostileReader : public HostileSender {
 protected:
  HostileReader() {
    region_.key = kKey;
    region_.memory = memory_.data();
    region_.bytes = memory_.size();
    region_.readable = true;
    regions_.add(region_);
    b_.serve(regions_, {.reads = true, .writes = false});
  }
  std::size_t flood_of_reads(std::size_t bytes, std::size_t count) {
    PacketHead head{};
    head.operation = Operation::read;
    head.bytes = bytes;
    head.ranges = 1;
    const RemoteRange range{0, bytes, kKey};
    std::string table(sizeof(range), ' ');
    std::memcpy(table.data(), &range, sizeof(range));
    return flood(head, table, count);
  }

  static constexpr std::uint64_t kKey = 17;
  std::string memory_ = std::string(1 << 20, '.');
  OpenRegion region_;
  Regions regions_;
};

TEST_F(HostileReader, ThatEndsNoneOfItsReadsIsClosed) {
  hostile_.takes_answers = true;
  EXPECT_LT(flood_of_reads(kMostOrdered + 1, 1'200'000), 1'200'000U);
  expect_closed_by_name();
  expect_others_go_on();
}

TEST_F(HostileReader, ThatTakesNoAnswersIsClosed) {
  EXPECT_LT(flood_of_reads(kMostOrdered, kLimit / kMostOrdered), kLimit / kMostOrdered);
  expect_closed_by_name();
  expect_others_go_on();
}

/// The sender reads no completion, and never finds its receiver busy.
TEST_F(MessengerTest, ASenderThatReadsNoCompletionSeesThatItIsToldToStop) {
  constexpr std::size_t kCount = 16 << 10;
  constexpr std::size_t kBytes = 16 << 10;
  const std::string text(kBytes, 'u');
  settle();
  at_a_log_.sends.clear();
  for (std::size_t i = 0; i < kCount; ++i) {
    SendRequest request = message("", 4);
    request.buffers = Buffers(text.data(), text.size());
    ASSERT_EQ(a_.send(request), 0);
    for (int k = 0; k < 8; ++k) b_.progress();
  }
  EXPECT_LT(at_a_log_.sends.size(), (66U << 20) / kBytes);
  std::string buffer(kBytes, ' ');
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(b_.receive(into(buffer, 4)), 0);
    ASSERT_EQ(next_receive().error, 0);
  }
}

}  // namespace
}  // namespace wherry::mpi
