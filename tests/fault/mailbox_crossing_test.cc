// SPDX-License-Identifier: Apache-2.0
// The mailboxes of two processes connect to each other at the same moment, with descriptors and without.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

#include "tests/common/no_descriptors.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

/// What the two know of each other; each writes its own side's.
struct Side {
  std::array<char, 64> address{};
  std::atomic<int> round{0};  ///< in which the address is valid
  std::atomic<int> heard{0};  ///< the last round of which the other's message has come
  std::atomic<int> over{0};   ///< the last round in which it has one peer and nothing more to do
};
using Sides = std::array<Side, 2>;

class Crosser {
 public:
  Crosser(Sides& sides, std::size_t own, bool short_of_descriptors)
      : own_(sides.at(own)), other_(sides.at(1 - own)), random_(own + 1), short_of_descriptors_(short_of_descriptors) {}

  /// Throws std::runtime_error.
  void meet(int round) {
    Mailbox mailbox;
    mailbox.listen(Address::parse("wherry+shm://*:*"));
    const std::string text = mailbox.local().to_string();
    own_.address = {};
    text.copy(own_.address.data(), own_.address.size() - 1);
    own_.round = round;
    while (other_.round != round) std::this_thread::yield();
    where_ = Address::parse(other_.address.data());
    begin(mailbox);
    while (own_.heard != round || other_.heard != round) exchange(mailbox, round);
    while (mailbox.peers() != 1) exchange(mailbox, round);
    own_.over = round;
    while (other_.over != round) (void)mailbox.progress();
  }

 private:
  void begin(Mailbox& mailbox) {
    for (auto i = random_() % 300; i > 0; --i) (void)mailbox.progress();
    std::optional<NoDescriptors> none;
    if (short_of_descriptors_ && random_() % 2 == 0) none.emplace();
    connect(mailbox);
    for (auto i = random_() % 2000; none && i > 0; --i) (void)mailbox.progress();
  }
  void connect(Mailbox& mailbox) {
    sent_ = false;
    try {
      to_ = mailbox.connect(where_);
    } catch (const Error& error) {
      if (!short_of_descriptors_ || error.code().value() != EMFILE) throw;
      to_ = Mailbox::kNoPeer;
    }
  }
  void exchange(Mailbox& mailbox, int round) {
    if (to_ == Mailbox::kNoPeer) connect(mailbox);
    if (!sent_ && to_ != Mailbox::kNoPeer) {
      const Result result = mailbox.try_send(to_, std::as_bytes(std::span(&round, 1)));
      sent_ = result.ok();
      if (result.failed() && !short_of_descriptors_) throw std::runtime_error("a send failed: " + result.to_string());
    }
    int got = 0;
    Mailbox::Peer from = Mailbox::kNoPeer;
    if (mailbox.try_receive(std::as_writable_bytes(std::span(&got, 1)), from).ok()) {
      if (got != round || (own_.heard == round && !short_of_descriptors_)) throw std::runtime_error("a wrong message");
      own_.heard = round;
    }
    (void)mailbox.progress();
    Mailbox::Loss loss{};
    if (mailbox.losses(std::span(&loss, 1)) == 0) return;
    const bool allowed = short_of_descriptors_ && loss.error != EPROTO;
    if (!allowed) throw std::runtime_error("a pair was lost: " + std::to_string(loss.error));
    mailbox.forget(loss.peer);
    if (loss.peer == to_) to_ = Mailbox::kNoPeer;
  }

  Side& own_;
  Side& other_;
  std::mt19937_64 random_;
  const bool short_of_descriptors_;
  Address where_;
  Mailbox::Peer to_ = Mailbox::kNoPeer;
  bool sent_ = false;
};

/// Both play so many rounds.
void play(int rounds, bool short_of_descriptors) {
  SharedValue<Sides> sides;
  const auto act = [&](std::size_t own) {
    Crosser crosser(*sides, own, short_of_descriptors);
    for (int round = 1; round <= rounds; ++round) crosser.meet(round);
    return true;
  };
  Child one([&] { return act(0); });
  Child other([&] { return act(1); });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(other.wait(), 0);
}

TEST(MailboxCrossing, OfTwoProcessesMakesOnePairOnWhichAMessageGoesEachWay) { play(500, false); }

TEST(MailboxCrossing, WithoutDescriptorsAtThatMomentEndsInOnePairOnceThereAreSome) {
  if (!NoDescriptors::kPossible) GTEST_SKIP() << "AddressSanitizer needs descriptors";
  play(500, true);
}

}  // namespace
}  // namespace wherry::fault
