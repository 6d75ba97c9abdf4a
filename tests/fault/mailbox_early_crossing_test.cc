// SPDX-License-Identifier: Apache-2.0
// Early data where two connect to each other at the same moment.
#include <array>
#include <atomic>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/mailbox_early.hpp"

namespace wherry::fault {
namespace {

/// What two processes know of each other that connect and send at the same moment; each writes its own side's.
struct Side {
  std::array<char, 64> address{};
  std::atomic<int> round{0};               ///< in which the address is valid
  std::atomic<std::uint64_t> sent{0};      ///< messages of this round that were taken
  std::atomic<int> away{0};                ///< the last round in which all its sends have returned
  std::atomic<std::uint64_t> received{0};  ///< of this round
  std::atomic<int> over{0};
};

struct Crossing {
  std::array<Side, 2> sides;
  std::atomic<bool> failed{false};  ///< one side has found an error: the other stops too
};

/// After its sends have returned, one side makes no call until the other has received all of them, and then the other.
class Crosser : public MailboxEarly {
 public:
  Crosser(Crossing& crossing, std::size_t own)
      : failed_(crossing.failed),
        own_(crossing.sides.at(own)),
        other_(crossing.sides.at(1 - own)),
        first_(own),
        random_(own + 1) {}
  void TestBody() override {}

  /// False: a message was lost, doubled or out of order on either side. The side that finds it prints it.
  [[nodiscard]] bool meet(int round) {
    round_ = round;
    Mailbox mailbox = listening();
    const std::string text = mailbox.local().to_string();
    own_.address = {};
    text.copy(own_.address.data(), own_.address.size() - 1);
    own_.received = 0;
    own_.round = round;
    if (!wait_until([&] { return other_.round == round; })) return false;
    const auto count = 1 + random_() % 8;
    for (auto i = random_() % 200; i > 0; --i) (void)mailbox.progress();
    const Mailbox::Peer to = mailbox.connect(Address::parse(other_.address.data()));
    for (std::uint64_t sent = 0; sent < count;) {
      if (send(mailbox, to, sent)) {
        ++sent;
      } else if (!take(mailbox)) {
        return false;
      }
    }
    own_.sent = count;
    own_.away = round;
    const auto is_received = [&] { return other_.received >= count; };
    const bool leaves_first = (static_cast<std::size_t>(round) % 2 == 0) == (first_ == 0);
    if (leaves_first && !wait_until(is_received)) return false;
    while (other_.away != round || own_.received < other_.sent) {
      if (!take(mailbox)) return false;
    }
    if (!wait_until(is_received)) return false;
    own_.over = round;
    if (!wait_until([&] { return other_.over == round; })) return false;
    return mailbox.peers() == 1 || fail(std::to_string(mailbox.peers()) + " peers");
  }

 private:
  bool fail(const std::string& what) {
    std::fprintf(stderr, "side %zu, round %d: %s; received %d, the other side %d\n", first_, round_, what.c_str(),
                 static_cast<int>(own_.received), static_cast<int>(other_.received));
    failed_ = true;
    return false;
  }
  /// Makes no call of the mailbox meanwhile.
  template <class Condition>
  bool wait_until(const Condition& condition) const {
    for (int looks = 0; !condition(); ++looks) {
      if (failed_) return false;
      if (looks < 1000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(50us);
      }
    }
    return true;
  }
  bool take(Mailbox& mailbox) {
    if (failed_) return false;
    Mailbox::Peer from = Mailbox::kNoPeer;
    (void)mailbox.wait(1ms);
    if (const Result result = mailbox.try_receive(buffer_, from); result.ok()) {
      const std::uint64_t number = own_.received;
      if (number_of(std::span(buffer_).first(result.bytes), number + 1) != number) {
        return fail("another message, of " + std::to_string(result.bytes) + " bytes");
      }
      own_.received = number + 1;
    }
    Mailbox::Loss loss{};
    return mailbox.losses(std::span(&loss, 1)) == 0 || fail("lost the peer, error " + std::to_string(loss.error));
  }

  std::atomic<bool>& failed_;
  Side& own_;
  Side& other_;
  const std::size_t first_;
  std::mt19937_64 random_;
  int round_ = 0;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kLongest);  ///< what has come of a message stays in it
};

TEST_F(MailboxEarly, MessagesOfTwoThatConnectAtOnceArriveOnceAndInOrderWhileEitherIsAway) {
  constexpr int kRounds = 1000;
  SharedValue<Crossing> crossing;
  const auto act = [&](std::size_t own) {
    Crosser crosser(*crossing, own);
    for (int round = 1; round <= kRounds; ++round) {
      if (!crosser.meet(round)) return false;
    }
    return true;
  };
  Child one([&] { return act(0); });
  Child other([&] { return act(1); });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace wherry::fault
