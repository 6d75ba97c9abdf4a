// SPDX-License-Identifier: Apache-2.0
// How pairs of mailboxes come about and end, and what waiting tells.
#include <array>
#include <cerrno>
#include <thread>

#include "tests/conformance/mailbox_pair.hpp"

namespace wherry::conformance {
namespace {

class MailboxConnecting : public MailboxTest {
 protected:
  static Mailbox::Loss loss_of(Mailbox& mailbox, std::initializer_list<Mailbox*> others = {}) {
    Mailbox::Loss loss{.peer = Mailbox::kNoPeer, .error = -1};
    drive({&mailbox}, [&] {
      for (Mailbox* other : others) other->progress();
      Mailbox::Piece piece;
      while (mailbox.try_peek(piece).ok()) mailbox.consume(piece, piece.bytes.size());
      return mailbox.losses(std::span(&loss, 1)) == 1;
    });
    return loss;
  }
};

TEST_P(MailboxConnecting, TwoThatConnectToEachOtherAtTheSameMomentAreOnePair) {
  for (int round = 0; round < 20; ++round) {
    Mailbox one = listening();
    Mailbox other = listening();
    const Mailbox::Peer to_other = one.connect(where(other));
    const Mailbox::Peer to_one = other.connect(where(one));
    drive({&one, &other}, [&] { return one.section(to_other).outgoing != 0 && other.section(to_one).outgoing != 0; });
    pass(one, to_other, other, pattern_, 10'000);
    pass(other, to_one, one, pattern_, 10'000, 5);
    EXPECT_EQ(one.peers(), 1U);
    EXPECT_EQ(other.peers(), 1U);
    EXPECT_EQ(one.connect(where(other)), to_other);
    Mailbox::Loss loss{};
    EXPECT_EQ(one.losses(std::span(&loss, 1)), 0U);
    EXPECT_EQ(other.losses(std::span(&loss, 1)), 0U);
  }
}

TEST_P(MailboxConnecting, AMessageToItselfArrives) {
  Mailbox self = listening();
  const Mailbox::Peer to = self.connect(where(self));
  drive({&self}, [&] { return self.section(to).outgoing != 0; });
  pass(self, to, self, pattern_, 1000);
}

TEST_P(MailboxConnecting, APeerThatLeavesIsALossInOrderAfterAllItSent) {
  Mailbox to = listening({.budget = 4096, .layout = Layout::equal});
  {
    Mailbox from;
    const Mailbox::Peer peer = join(from, to);
    EXPECT_TRUE(from.send(peer, pattern_.bytes(50), kTimeout).ok());
  }
  Mailbox::Peer from = Mailbox::kNoPeer;
  EXPECT_TRUE(pattern_.matches(receive(to, from), 0));
  const Mailbox::Loss loss = loss_of(to);
  EXPECT_EQ(loss.peer, from);
  EXPECT_EQ(loss.error, 0);
  EXPECT_EQ(to.try_send(from, pattern_.bytes(1)).error, EPIPE);
  EXPECT_EQ(to.peers(), 0U);
  to.forget(from);
  EXPECT_EQ(to.try_send(from, pattern_.bytes(1)).error, EINVAL);
}

TEST_P(MailboxConnecting, APeerThatIsForgottenLosesThisSideAndMayComeAgain) {
  Mailbox to = listening();
  Mailbox from;
  for (int round = 0; round < 5; ++round) {
    const Mailbox::Peer peer = join(from, to);
    pass(from, peer, to, pattern_, 100);
    from.forget(peer);
    EXPECT_EQ(from.peers(), 0U);
    const Mailbox::Loss loss = loss_of(to);
    EXPECT_EQ(loss.error, 0);
    to.forget(loss.peer);
  }
}

TEST_P(MailboxConnecting, ConnectingWhereNothingListensIsRefused) {
  Mailbox from;
  Address nowhere;
  {
    const Mailbox gone = listening();
    nowhere = where(gone);
  }
  if (GetParam().refuses_at_once) {
    EXPECT_EQ(error_of([&] { from.connect(nowhere, 0ns); }), ECONNREFUSED);
  } else {
    (void)from.connect(nowhere, 0ns);
    EXPECT_EQ(loss_of(from).error, ECONNREFUSED);
  }
  EXPECT_EQ(from.peers(), 0U);
}

TEST_P(MailboxConnecting, AListenerThatEndsBeforeItLetsInIsALoss) {
  Mailbox from;
  Mailbox::Peer peer = Mailbox::kNoPeer;
  {
    const Mailbox to = listening();
    peer = from.connect(where(to));
  }
  const Mailbox::Loss loss = loss_of(from);
  EXPECT_EQ(loss.peer, peer);
  EXPECT_EQ(loss.error, ECONNREFUSED);
}

TEST_P(MailboxConnecting, AMessageMayBeTriedBeforeThePeerLetsIn) {
  Mailbox to = listening();
  Mailbox from;
  const Mailbox::Peer peer = from.connect(where(to));
  EXPECT_TRUE(from.try_send(peer, pattern_.bytes(10)).would_block());
  Mailbox::Peer writable = Mailbox::kNoPeer;
  drive({&from, &to}, [&] { return from.writable(std::span(&writable, 1)) == 1; });
  EXPECT_EQ(writable, peer);
  EXPECT_TRUE(from.try_send(peer, pattern_.bytes(10)).ok());
}

TEST_P(MailboxConnecting, WhatASendTookBeforeItsSideWasAcceptedArrivesThoughThatClosed) {
  constexpr MailboxOptions kOverflow{.overflow = std::size_t{320} << 10};
  Mailbox to = listening(kOverflow);
  std::size_t taken = 0;
  {
    Mailbox from(kOverflow);
    const Mailbox::Peer peer = from.connect(where(to));
    for (int i = 0; i < 5; ++i) {
      const auto content = pattern_.bytes(10, taken);
      const iovec piece{const_cast<std::byte*>(content.data()), content.size()};
      Mailbox::Outgoing message{.pieces = std::span(&piece, 1), .bytes = content.size()};
      const Result result = from.try_send_whole(peer, message);
      EXPECT_FALSE(result.failed()) << result.to_string();
      taken += result.ok() ? 1 : 0;
      EXPECT_EQ(message.taken, result.ok() ? 10U : 0U);
    }
    if (taken == 0) {
      EXPECT_EQ(from.send(peer, pattern_.bytes(10), 5ms).error, ETIMEDOUT);
    }
  }
  Mailbox::Peer from = Mailbox::kNoPeer;
  for (std::size_t i = 0; i < taken; ++i) EXPECT_TRUE(pattern_.matches(receive(to, from), i));
  std::array<std::byte, 10> more{};
  (void)to.wait(5ms);
  EXPECT_FALSE(to.try_receive(more, from).ok());
}

TEST_P(MailboxConnecting, NoMoreThanMostPeersAreLetIn) {
  Mailbox to = listening({.most_peers = 1});
  Mailbox first, second;
  (void)join(first, to);
  const Mailbox::Peer peer = second.connect(where(to));
  Mailbox::Loss loss{};
  drive({&to, &second},
        [&] { return second.losses(std::span(&loss, 1)) == 1 || to.peers() > 1 || second.peers() == 1; });
  EXPECT_EQ(to.peers(), 1U);
  EXPECT_EQ(second.section(peer).outgoing, 0U);
  Mailbox small({.most_peers = 1});
  (void)small.connect(where(to));
  const Mailbox other = listening();
  EXPECT_EQ(error_of([&] { small.connect(where(other)); }), ENOSPC);
}

TEST_P(MailboxConnecting, AMessageTooLongToGoWholeIsRefused) {
  Mailbox to = listening({.header = 128});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  EXPECT_EQ(from.try_send(peer, pattern_.bytes(113)).error, EMSGSIZE);
  EXPECT_TRUE(from.try_send(peer, pattern_.bytes(112)).ok());
}

TEST_P(MailboxConnecting, AMessageCannotBeginBeforeTheLastIsWhole) {
  Mailbox to = listening({.budget = 128});
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  const auto content = pattern_.bytes(1000);
  const iovec piece{const_cast<std::byte*>(content.data()), content.size()};
  Mailbox::Outgoing first{.pieces = std::span(&piece, 1), .bytes = 1000}, second = first;
  EXPECT_TRUE(from.try_send(peer, first).ok());
  EXPECT_LT(first.taken, 1000U);
  EXPECT_EQ(from.try_send(peer, second).error, EINVAL);
}

TEST_P(MailboxConnecting, AShortBufferTellsHowLongTheMessageIs) {
  Mailbox to = listening();
  Mailbox from;
  const Mailbox::Peer peer = join(from, to);
  ASSERT_TRUE(from.try_send(peer, pattern_.bytes(100)).ok());
  std::vector<std::byte> buffer(99);
  Mailbox::Peer who = Mailbox::kNoPeer;
  const Result result = to.receive(buffer, who, kTimeout);
  EXPECT_EQ(result.error, EMSGSIZE);
  EXPECT_EQ(result.bytes, 100U);
  buffer.resize(100);
  EXPECT_EQ(to.receive(buffer, who, kTimeout).bytes, 100U);
  EXPECT_TRUE(pattern_.matches(buffer, 0));
}

TEST_P(MailboxConnecting, WaitEndsWithTheTimeoutOrAnInterruption) {
  Mailbox to = listening();
  EXPECT_FALSE(to.wait(1ms));
  to.interrupt();
  EXPECT_TRUE(to.wait(kTimeout));
  EXPECT_FALSE(to.wait(0ms));
  std::thread other([&] { to.interrupt(); });
  EXPECT_TRUE(to.wait(kTimeout));
  other.join();
}

TEST_P(MailboxConnecting, TheDescriptorIsReadableWhileThereIsSomethingAndSilentAfterProgressFoundNothing) {
  Mailbox to = listening();
  Mailbox from;
  const int descriptor = to.descriptor();
  const Mailbox::Peer peer = from.connect(where(to));
  EXPECT_TRUE(readable(descriptor));
  drive({&from, &to}, [&] { return from.section(peer).outgoing != 0; });
  for (int i = 0; i < 10; ++i) {
    drive({&from}, [&] { return !to.progress() && !readable(descriptor, 0ms); });
    ASSERT_TRUE(from.try_send(peer, pattern_.bytes(10)).ok());
    EXPECT_TRUE(readable(descriptor));
    EXPECT_TRUE(to.wait(kTimeout));
    EXPECT_TRUE(readable(descriptor)) << "it was not consumed";
    Mailbox::Peer who = Mailbox::kNoPeer;
    EXPECT_EQ(receive(to, who).size(), 10U);
  }
}

WHERRY_ON_EVERY_FABRIC(MailboxConnecting);

}  // namespace
}  // namespace wherry::conformance
