// SPDX-License-Identifier: Apache-2.0
// Whole messages that a section does not hold, while their receiver does nothing.
#include <poll.h>

#include <array>
#include <fstream>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/conformance/mailbox_pair.hpp"

namespace wherry::conformance {
namespace {

constexpr std::size_t kOverflow = std::size_t{64} << 10;

class MailboxOverflow : public MailboxTest {
 protected:
  /// Messages that `from` sends and the other receives, numbered; the contents of each follows from its number.
  struct Flow {
    Mailbox* from;
    Mailbox::Peer to;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t position = 0;  ///< in the one that arrives
  };

  [[nodiscard]] static std::size_t length(std::uint64_t number) {
    std::mt19937_64 random(number);
    return random() % (random() % 4 == 0 ? 6000 : 150);
  }
  [[nodiscard]] bool send_whole(Flow& flow) const {
    const auto content = pattern_.bytes(length(flow.sent), flow.sent);
    const iovec piece{const_cast<std::byte*>(content.data()), content.size()};
    Mailbox::Outgoing message{.pieces = std::span(&piece, 1), .bytes = content.size()};
    const Result result = flow.from->try_send_whole(flow.to, message);
    EXPECT_FALSE(result.failed()) << result.to_string();
    if (!result.ok()) {
      EXPECT_EQ(message.taken, 0U);
      return false;
    }
    EXPECT_EQ(message.taken, content.size());
    ++flow.sent;
    return true;
  }
  [[nodiscard]] static bool send_zeros(Mailbox& from, Mailbox::Peer to, std::size_t bytes) {
    std::vector<std::byte> zeros(bytes);
    const iovec piece{zeros.data(), bytes};
    Mailbox::Outgoing message{.pieces = std::span(&piece, 1), .bytes = bytes};
    return from.try_send_whole(to, message).ok();
  }
  static void read_all(Mailbox& to) {
    for (Mailbox::Piece piece; to.try_peek(piece).ok();) to.consume(piece, piece.bytes.size());
  }
  /// Sends zeros until `unread` bytes lie in messages of kBytes that `to` has not read, then lets it read half of them.
  static void fill_and_read_half(Mailbox& from, Mailbox::Peer peer, Mailbox& to, std::size_t& unread) {
    constexpr std::size_t kBytes = 1000;
    for (; unread + kBytes <= kOverflow * 3 / 4; unread += kBytes)
      ASSERT_TRUE(send_zeros(from, peer, kBytes)) << unread;
    for (Mailbox::Piece piece; unread > kOverflow * 3 / 8;) {
      if (!to.try_peek(piece).ok()) continue;
      unread -= piece.bytes.size();
      to.consume(piece, piece.bytes.size());
    }
  }
  /// Receives everything that was sent. The sender makes no call.
  void receive_all(Flow& flow, Mailbox& into) const {
    constexpr int kMostLooks = 1000;
    for (int looks = 0; flow.received < flow.sent; ++looks) {
      if (receive_piece(flow, into)) looks = 0;
      ASSERT_LT(looks, kMostLooks);
    }
  }
  [[nodiscard]] bool receive_piece(Flow& flow, Mailbox& into) const {
    Mailbox::Piece piece;
    if (!into.try_peek(piece).ok()) return false;
    EXPECT_EQ(piece.message_bytes, length(flow.received));
    EXPECT_EQ(piece.offset, flow.position);
    EXPECT_TRUE(pattern_.matches(piece.bytes.first, flow.received + flow.position));
    EXPECT_TRUE(pattern_.matches(piece.bytes.second, flow.received + flow.position + piece.bytes.first.size()));
    flow.position += piece.bytes.size();
    into.consume(piece, piece.bytes.size());
    if (flow.position < piece.message_bytes) return true;
    ++flow.received;
    flow.position = 0;
    return true;
  }
};

TEST_P(MailboxOverflow, WhatWasTakenArrivesWithoutAnotherCallOfItsSender) {
  if (!GetParam().maps || !GetParam().faults.empty()) GTEST_SKIP() << "what is sent may need calls to arrive";
  for (const std::size_t budget : {std::size_t{128}, std::size_t{3072}, kOverflow, 2 * kOverflow}) {
    Mailbox to = listening({.budget = budget, .layout = Layout::equal, .overflow = kOverflow});
    Mailbox from;
    Flow flow{.from = &from, .to = join(from, to)};
    for (int round = 0; round < 3; ++round) {
      std::uint64_t bytes = 0;
      while (send_whole(flow)) bytes += length(flow.sent - 1);
      EXPECT_GE(bytes, kOverflow - 6000 - kOverflow / 4);
      while (!HasFailure() && flow.received < flow.sent) {
        if (!receive_piece(flow, to)) {
          ASSERT_TRUE(to.wait(kTimeout));
        }
      }
    }
    pass(from, flow.to, to, pattern_, 100'000);  // and in pieces
  }
}

TEST_P(MailboxOverflow, AReceiverThatHasReadAPartAcceptsAsMuchAgain) {
  if (!GetParam().maps || !GetParam().faults.empty()) GTEST_SKIP() << "there is no overflow, or no telling when";
  for (const std::size_t budget : {std::size_t{128}, std::size_t{3072}, kOverflow / 2, kOverflow, 2 * kOverflow}) {
    Mailbox to = listening({.budget = budget, .layout = Layout::equal, .overflow = kOverflow});
    Mailbox from;
    const Mailbox::Peer peer = join(from, to);
    std::size_t unread = 0;
    for (int round = 0; round < 16 && !HasFatalFailure(); ++round) fill_and_read_half(from, peer, to, unread);
  }
}

TEST_P(MailboxOverflow, AReceiverThatHasReadAPartAcceptsAsMuchAgainWhileItsLayoutChanges) {
  if (!GetParam().maps || !GetParam().faults.empty()) GTEST_SKIP() << "there is no overflow, or no telling when";
  Mailbox to = listening({.budget = 2 * kOverflow, .layout = Layout::equal, .overflow = kOverflow});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  std::size_t unread = 0;
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round) {
    to.set_budget(round % 2 == 0 ? 2 * kOverflow : std::size_t{64} << (round % 11));
    fill_and_read_half(from, peer, to, unread);
  }
  EXPECT_GT(to.section(0).changes, 20U);
}

TEST_P(MailboxOverflow, SendersThatWaitAreToldOfRoomForAllOfTheMessage) {
  Mailbox to = listening({.budget = 8192, .layout = Layout::equal, .overflow = kOverflow});
  Mailbox from;
  Flow flow{.from = &from, .to = join(from, to)};
  if (!GetParam().maps) GTEST_SKIP() << "there is no overflow";
  Flow sending = flow;
  std::thread receiver([&] {
    while (!HasFailure() && flow.received < 2000) {
      if (!receive_piece(flow, to)) {
        ASSERT_TRUE(to.wait(kTimeout));
      }
    }
  });
  while (!HasFailure() && sending.sent < 2000) {
    if (!send_whole(sending)) {
      ASSERT_TRUE(from.wait(kTimeout));
    }
  }
  receiver.join();
}

// Sections grow and shrink meanwhile.
TEST_P(MailboxOverflow, MessagesStayWholeAndInOrderWhileLayoutsChange) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Mailbox to = listening({.budget = std::size_t{64} << 10, .layout = Layout::equal, .overflow = kOverflow});
    Mailbox from;
    Flow flow{.from = &from, .to = join(from, to)};
    if (!GetParam().maps) GTEST_SKIP() << "there is no overflow";
    while (!HasFailure() && flow.received < 2000) {
      const std::uint64_t step = random();
      const auto count = static_cast<int>(random() % (random() % 8 == 0 ? 400 : 8));
      for (int i = 0; i < count; ++i) {
        if (step % 2 == 0 ? !send_whole(flow) : !receive_piece(flow, to)) break;
      }
      if (step % 64 < 4) to.set_budget(64 * (2 + random() % 1000));
      if (step % 8 == 0) from.progress();
      if (step % 8 == 1) to.progress();
    }
    std::array<Mailbox::Loss, 1> losses;
    EXPECT_EQ(to.losses(losses) + from.losses(losses), 0U);
  }
}

// The sender has left the overflow and entered it again before it sees the change, which the receiver sees at once.
TEST_P(MailboxOverflow, MessagesAreReadWhereTheyLieIfTheLayoutChangesAfterTheOverflowWasEntered) {
  if (!GetParam().maps || !GetParam().faults.empty()) GTEST_SKIP() << "there is no overflow, or no telling when";
  Mailbox to = listening({.budget = std::size_t{64} << 10, .layout = Layout::equal, .overflow = kOverflow});
  Mailbox from;
  Flow flow{.from = &from, .to = join(from, to)};
  for (std::size_t round = 0; round < 200 && !HasFailure(); ++round) {
    to.set_budget(64 * (2 + round % 20));
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(send_whole(flow));
    ASSERT_NO_FATAL_FAILURE(receive_all(flow, to));
    for (std::size_t i = 0; i < round % 5; ++i) ASSERT_TRUE(send_whole(flow));
    to.set_budget(64 * (2 + round % 13));
    for (std::size_t i = 0; i < round % 3; ++i) ASSERT_TRUE(send_whole(flow));
    ASSERT_NO_FATAL_FAILURE(receive_all(flow, to));
  }
  std::array<Mailbox::Loss, 1> losses;
  EXPECT_EQ(to.losses(losses) + from.losses(losses), 0U);
}

TEST_P(MailboxOverflow, MessagesShorterThanAWordGoOnBehindASectionThatIsFull) {
  if (!GetParam().maps || !GetParam().faults.empty()) GTEST_SKIP() << "there is no overflow, or no telling when";
  Mailbox to = listening({.budget = 128, .layout = Layout::equal, .overflow = kOverflow});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  read_all(to);
  ASSERT_TRUE(send_zeros(from, peer, 104));
  int sent = 0;
  while (send_zeros(from, peer, 0)) ++sent;
  EXPECT_GT(sent, 1000);
}

TEST_P(MailboxOverflow, RoomForTheRestOfAMessageIsTold) {
  if (!GetParam().maps) GTEST_SKIP() << "there is no overflow";
  Mailbox to = listening({.budget = 4096, .layout = Layout::equal, .overflow = kOverflow});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  std::vector<std::byte> zeros(20'000);
  const iovec piece{zeros.data(), zeros.size()};
  Mailbox::Outgoing message{.pieces = std::span(&piece, 1), .bytes = zeros.size()};
  while (from.try_send(peer, message).ok()) {
  }
  ASSERT_LT(message.taken, message.bytes);
  EXPECT_FALSE(send_zeros(from, peer, 8));
  read_all(to);
  EXPECT_TRUE(from.wait(kTimeout));
}

constexpr std::size_t kMiB = std::size_t{1} << 20;

bool has_shared_pages(const FabricUnderTest& param) {
  return std::string_view(param.fabric) == "shm" && param.maps && param.faults.empty();
}

std::uint64_t shared_pages() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  std::uint64_t shared = 0;
  file >> size >> resident >> shared;
  return shared;
}

TEST_P(MailboxOverflow, ItsPagesAreTheSystemsAgainOnceAllWasRead) {
  if (!has_shared_pages(GetParam())) GTEST_SKIP() << "the pages of shared memory are counted";
  Mailbox to = listening({.budget = 4096, .layout = Layout::equal, .overflow = 64 * kMiB});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  const std::uint64_t before = shared_pages();
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(send_zeros(from, peer, kMiB));
  EXPECT_GT(shared_pages(), before + 32 * kMiB / 4096);
  read_all(to);
  drive({&from, &to}, [&] { return shared_pages() < before + 4 * kMiB / 4096; });
}

TEST_P(MailboxOverflow, ASenderThatSleepsIsWokenToGiveItsPagesBack) {
  if (!has_shared_pages(GetParam())) GTEST_SKIP() << "the pages of shared memory are counted";
  Mailbox to = listening({.budget = 4096, .layout = Layout::equal, .overflow = 64 * kMiB});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  drive({&from, &to}, [&] { return from.section(peer).outgoing == 4096; });  // no grant is under way
  const std::uint64_t before = shared_pages();
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(send_zeros(from, peer, kMiB));
  pollfd sleep{.fd = from.descriptor(), .events = POLLIN, .revents = 0};
  while (from.progress()) {
  }
  read_all(to);
  ASSERT_EQ(::poll(&sleep, 1, -1), 1);
  drive({&from}, [&] { return shared_pages() < before + 4 * kMiB / 4096; });
}

WHERRY_ON_EVERY_FABRIC(MailboxOverflow);

}  // namespace
}  // namespace wherry::conformance
