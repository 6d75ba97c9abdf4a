// SPDX-License-Identifier: Apache-2.0
// Mailboxes killed with SIGKILL at any moment: what was sent is received, what was held goes to the others.
#include <unistd.h>

#include <cerrno>
#include <random>
#include <vector>

#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

constexpr std::size_t kBudget = 8192;
constexpr std::size_t kMessage = 3000;

class MailboxDeath : public FaultTest {
 protected:
  static Mailbox listening() {
    Mailbox mailbox({.budget = kBudget, .layout = Layout::equal});
    mailbox.listen(Address::parse(address()));
    return mailbox;
  }
  /// Sends messages of the pattern, each from where its number says, until it is killed or one fails.
  int send_for_ever(const Address& where) {
    Mailbox mailbox;
    const Mailbox::Peer peer = mailbox.connect(where);
    for (std::uint64_t i = 0;; ++i) {
      const Result result = mailbox.send(peer, pattern_.bytes(kMessage, i), kTimeout);
      if (!result.ok()) return result.error;
      scene_->accepted_bytes = i + 1;
      scene_->ready = true;
    }
  }
  /// Receives whole messages until a loss, and expects each in its turn. Returns how many.
  std::uint64_t receive_to_the_last(Mailbox& mailbox, Mailbox::Loss& loss) {
    std::vector<std::byte> buffer(kMessage);
    Mailbox::Peer from = Mailbox::kNoPeer;
    for (std::uint64_t i = 0;;) {
      const Result result = mailbox.receive(buffer, from, kTimeout);
      if (result.ok()) {
        EXPECT_EQ(result.bytes, kMessage);
        EXPECT_TRUE(pattern_.matches(buffer, i++));
      } else if (mailbox.losses(std::span(&loss, 1)) == 1) {
        return i;
      }
    }
  }
};

TEST_F(MailboxDeath, OfASenderLosesNothingThatItHadSent) {
  std::mt19937_64 random(1);
  for (std::uint64_t round = 0; round < 20; ++round) {
    reset_scene();
    Mailbox mailbox = listening();
    const Child victim([&, where = mailbox.local()] { return send_for_ever(where) != 0; });
    const Child killer = killer_of(victim, std::chrono::microseconds(random() % 3000));
    Mailbox::Loss loss{};
    const std::uint64_t received = receive_to_the_last(mailbox, loss);
    noticed();
    EXPECT_EQ(loss.error, ECONNRESET);
    EXPECT_GE(received, scene_->accepted_bytes);
    EXPECT_EQ(mailbox.peers(), 0U);
  }
}

TEST_F(MailboxDeath, OfASenderGivesItsShareToTheOthers) {
  Mailbox mailbox = listening();
  Mailbox other;
  const Mailbox::Peer peer = other.connect(mailbox.local());
  const Child victim([&, where = mailbox.local()] { return send_for_ever(where) != 0; });
  std::vector<std::byte> buffer(kMessage);
  Mailbox::Peer from = Mailbox::kNoPeer;
  while (other.section(peer).outgoing != kBudget / 2) {
    (void)mailbox.try_receive(buffer, from);
    mailbox.progress();
    other.progress();
  }
  kill_now(victim);
  while (other.section(peer).outgoing != kBudget) {
    (void)mailbox.try_receive(buffer, from);
    mailbox.progress();
    other.progress();
  }
}

TEST_F(MailboxDeath, OfAReceiverEndsASendThatSleeps) {
  std::mt19937_64 random(2);
  for (std::uint64_t round = 0; round < 20; ++round) {
    reset_scene();
    Mailbox mailbox;
    mailbox.listen(Address::parse(address()));
    const Child victim([&, where = mailbox.local()] {
      Mailbox doomed({.budget = kBudget});
      const Mailbox::Peer peer = doomed.connect(where);
      std::vector<std::byte> buffer(kMessage);
      for (std::uint64_t i = 0; doomed.send(peer, pattern_.bytes(8), kTimeout).ok(); ++i) {
        scene_->ready = true;
        Mailbox::Peer from = Mailbox::kNoPeer;
        for (int n = 0; n < 10; ++n) (void)doomed.receive(buffer, from, kTimeout);
        // No more is received: the sender sleeps.
        if (i == round % 4) doomed.wait(kTimeout), ::pause();
      }
      return false;
    });
    std::vector<std::byte> hello(8);
    Mailbox::Peer from = Mailbox::kNoPeer;
    ASSERT_TRUE(mailbox.receive(hello, from, kTimeout).ok());
    const Child killer = killer_of(victim, std::chrono::microseconds(random() % 3000));
    Result result;
    while ((result = mailbox.send(from, pattern_.bytes(kMessage), kTimeout)).ok()) {
    }
    noticed();
    EXPECT_EQ(result.error, ECONNRESET);
    Mailbox::Loss loss{};
    while (mailbox.losses(std::span(&loss, 1)) == 0) {
      (void)mailbox.try_receive(hello, from);
      mailbox.progress();
    }
    EXPECT_EQ(loss.error, ECONNRESET);
  }
}

TEST_F(MailboxDeath, AForkedChildThatDestroysItsCopyDisturbsNothing) {
  Mailbox mailbox = listening();
  Mailbox sender;
  const Mailbox::Peer peer = sender.connect(mailbox.local());
  std::vector<std::byte> buffer(kMessage);
  Mailbox::Peer from = Mailbox::kNoPeer;
  while (sender.section(peer).outgoing == 0) mailbox.progress(), sender.progress();
  for (int round = 0; round < 3; ++round) {
    Child child([&] {
      const Mailbox mine = std::move(mailbox), other = std::move(sender);
      return true;
    });
    EXPECT_EQ(child.wait(), 0);
    ASSERT_TRUE(sender.send(peer, pattern_.bytes(100), kTimeout).ok());
    const Result result = mailbox.receive(buffer, from, kTimeout);
    ASSERT_TRUE(result.ok()) << result;
    EXPECT_TRUE(pattern_.matches(std::span(buffer).first(100), 0));
  }
  EXPECT_EQ(mailbox.peers(), 1U);
}

}  // namespace
}  // namespace wherry::fault
