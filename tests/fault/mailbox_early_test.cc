// SPDX-License-Identifier: Apache-2.0
// Messages that are sent before their receiver has let the sender in.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "fabric/fabric.hpp"
#include "layout/mailbox_page.hpp"
#include "tests/common/no_descriptors.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

constexpr std::size_t kOverflow = std::size_t{320} << 10;
constexpr std::size_t kLongest = 5000;

MailboxOptions options() { return {.budget = 4096, .layout = Layout::equal, .overflow = kOverflow}; }

class MailboxEarly : public FaultTest {
 protected:
  static Mailbox listening() {
    Mailbox mailbox(options());
    mailbox.listen(Address::parse(address()));
    return mailbox;
  }
  [[nodiscard]] static std::size_t length(std::uint64_t number) { return number * 37 % kLongest; }
  /// The message of this number, as a whole or not at all.
  [[nodiscard]] bool send(Mailbox& from, Mailbox::Peer to, std::uint64_t number) const {
    const auto content = pattern_.bytes(length(number), number);
    const iovec piece{const_cast<std::byte*>(content.data()), content.size()};
    Mailbox::Outgoing message{.pieces = std::span(&piece, 1), .bytes = content.size()};
    return from.try_send_whole(to, message).ok();
  }
  /// The next message that there is, which must be that of this number.
  [[nodiscard]] bool receive(Mailbox& to, std::uint64_t number) const {
    std::vector<std::byte> buffer(kLongest);
    Mailbox::Peer from = Mailbox::kNoPeer;
    const Result result = to.receive(buffer, from, kTimeout);
    EXPECT_TRUE(result.ok()) << result.to_string();
    EXPECT_EQ(result.bytes, length(number));
    const bool right =
        result.bytes == length(number) && pattern_.matches(std::span(buffer).first(result.bytes), number);
    EXPECT_TRUE(right) << "of message " << number;
    return right;
  }
  /// Which message it is, of that many. As many: none of them.
  [[nodiscard]] std::uint64_t number_of(std::span<const std::byte> message, std::uint64_t messages) const {
    std::uint64_t number = 0;
    while (number < messages && (message.size() != length(number) || !pattern_.matches(message, number))) ++number;
    return number;
  }
  static Mailbox::Loss wait_for_loss(Mailbox& mailbox) {
    Mailbox::Loss loss{};
    while (mailbox.losses(std::span(&loss, 1)) == 0) mailbox.wait(kTimeout);
    return loss;
  }
};

TEST_F(MailboxEarly, MessagesArriveThoughTheirSenderMakesNoFurtherCall) {
  Mailbox to = listening();
  Mailbox from(options());
  const Mailbox::Peer peer = from.connect(to.local());
  std::uint64_t sent = 0;
  std::size_t bytes = 0;
  for (; send(from, peer, sent); ++sent) bytes += length(sent);
  EXPECT_GE(sent, 64U);
  EXPECT_GE(bytes, std::size_t{256} << 10);
  for (std::uint64_t number = 0; number < sent; ++number) ASSERT_TRUE(receive(to, number));
}

TEST_F(MailboxEarly, MessagesComeBeforeThoseThatFollowThroughTheSection) {
  Mailbox to = listening();
  Mailbox from(options());
  const Mailbox::Peer peer = from.connect(to.local());
  for (std::uint64_t number = 0; number < 5; ++number) ASSERT_TRUE(send(from, peer, number));
  to.progress();
  (void)to.wait(0ns);
  std::uint64_t sent = 5;
  while (from.section(peer).outgoing == 0 || sent < 20) {
    if (send(from, peer, sent)) ++sent;
    from.progress();
  }
  for (std::uint64_t number = 0; number < sent; ++number) ASSERT_TRUE(receive(to, number));
}

TEST_F(MailboxEarly, MessagesOfASenderThatHasClosedArriveAndThenTheEnd) {
  for (const std::uint64_t count : {1U, 50U}) {
    Mailbox to = listening();
    {
      Mailbox from(options());
      const Mailbox::Peer peer = from.connect(to.local());
      for (std::uint64_t number = 0; number < count; ++number) ASSERT_TRUE(send(from, peer, number));
    }
    for (std::uint64_t number = 0; number < count; ++number) ASSERT_TRUE(receive(to, number));
    EXPECT_EQ(wait_for_loss(to).error, 0);
    EXPECT_EQ(to.peers(), 0U);
  }
}

TEST_F(MailboxEarly, MessagesOfASenderThatWasKilledArriveAndThenItsDeath) {
  Mailbox to = listening();
  Child victim([&, where = to.local()]() -> bool {
    Mailbox from(options());
    const Mailbox::Peer peer = from.connect(where);
    for (std::uint64_t number = 0; number < 50; ++number) {
      if (!send(from, peer, number)) return false;
    }
    scene_->ready = true;
    while (true) ::pause();
  });
  while (!scene_->ready) std::this_thread::yield();
  victim.kill();
  EXPECT_EQ(victim.wait(), -1);
  for (std::uint64_t number = 0; number < 50; ++number) ASSERT_TRUE(receive(to, number));
  EXPECT_EQ(wait_for_loss(to).error, ECONNRESET);
}

TEST_F(MailboxEarly, MessagesOfSendersThatComeAndGoWhileTheReceiverLooksAllArrive) {
  constexpr std::uint64_t kSenders = 300;
  constexpr std::uint64_t kMostAhead = 50;  // each takes descriptors of the receiver
  SharedValue<std::atomic<std::uint64_t>> received_count;
  Mailbox to = listening();
  Child child([&, where = to.local()] {
    for (std::uint64_t number = 0; number < kSenders; ++number) {
      while (number > *received_count + kMostAhead) std::this_thread::yield();
      Mailbox from(options());
      const Mailbox::Peer peer = from.connect(where);
      // The receiver may have claimed what was there, and not have granted a section yet.
      while (!send(from, peer, number)) (void)from.progress();
    }
    return true;
  });
  std::vector<bool> received(kSenders);
  std::vector<std::byte> buffer(kLongest);
  for (std::uint64_t count = 0, losses = 0; count < kSenders || losses < kSenders;) {
    Mailbox::Peer from = Mailbox::kNoPeer;
    if (const Result result = to.try_receive(buffer, from); result.ok()) {
      const std::uint64_t number = number_of(std::span(buffer).first(result.bytes), kSenders);
      ASSERT_LT(number, kSenders) << "no message of " << result.bytes << " bytes was sent like this one";
      ASSERT_FALSE(received[number]) << number;
      received[number] = true;
      *received_count = ++count;
    }
    to.progress();
    if (Mailbox::Loss loss{}; to.losses(std::span(&loss, 1)) == 1) {
      ++losses;
      EXPECT_EQ(loss.error, 0);
      to.forget(loss.peer);
    }
  }
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(MailboxEarly, MessagesOfSendersThatHaveEndedWaitUntilTheReceiverHasDescriptors) {
  if (!NoDescriptors::kPossible) GTEST_SKIP() << "AddressSanitizer needs descriptors";
  constexpr std::uint64_t kSenders = 20;
  Mailbox to = listening();
  Child child([&, where = to.local()] {
    for (std::uint64_t number = 0; number < kSenders; ++number) {
      Mailbox from(options());
      if (!send(from, from.connect(where), number)) return false;
    }
    return true;
  });
  EXPECT_EQ(child.wait(), 0);
  for (const rlim_t descriptors : {0, 1, 3, 5, 6}) {
    const NoDescriptors none(descriptors);
    for (int i = 0; i < 10; ++i) (void)to.wait(2ms);
  }
  for (std::uint64_t number = 0; number < kSenders; ++number) {
    ASSERT_TRUE(receive(to, number));
    const Mailbox::Loss loss = wait_for_loss(to);
    EXPECT_EQ(loss.error, 0);
    to.forget(loss.peer);
  }
}

TEST_F(MailboxEarly, AForkedChildThatDestroysItsCopyOfTheSenderTakesNothingAway) {
  Mailbox to = listening();
  Mailbox from(options());
  const Mailbox::Peer peer = from.connect(to.local());
  ASSERT_TRUE(send(from, peer, 1));
  Child child([&] {
    const Mailbox mine = std::move(from);
    return true;
  });
  EXPECT_EQ(child.wait(), 0);
  ASSERT_TRUE(send(from, peer, 2));
  ASSERT_TRUE(receive(to, 1));
  ASSERT_TRUE(receive(to, 2));
  EXPECT_EQ(to.peers(), 1U);
}

/// A connector that writes what it likes before it is let in.
class HostileConnector {
 public:
  explicit HostileConnector(const Address& where, std::uint32_t early) {
    layout::MailboxGreeting greeting{};
    greeting.magic = layout::kMailboxMagic;
    greeting.version = layout::kMailboxVersion;
    greeting.mailbox = 666;
    greeting.header = 128;
    greeting.early = early;
    fabric::Offer offer{.segment_bytes = 64 << 10};
    std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
    connecting_ = fabric::find("shm").connect(where, offer);
    segment_ = connecting_->segment();
  }
  /// Puts one message of `bytes` bytes, all `value`, into the area.
  void attach(std::size_t early, std::uint64_t bytes, int value) {
    std::memcpy(area(early).data(), &bytes, sizeof bytes);
    std::memset(area(early).data() + sizeof bytes, value, bytes);
    page().early.store(sizeof bytes + bytes, std::memory_order_release);  // MAILBOX-EARLY
  }
  /// Grants the other side the least section.
  void grant() {
    while (connection_ == nullptr) connection_ = connecting_->try_finish();
    auto& other = *reinterpret_cast<layout::MailboxPage*>(connection_->map());
    other.grant.store(std::uint64_t{1} << 32 | 2, std::memory_order_release);  // MAILBOX-GRANT
    connection_->announce(fabric::Bell::data);
  }
  layout::MailboxPage& page() { return *reinterpret_cast<layout::MailboxPage*>(segment_.data()); }
  std::span<std::byte> area(std::size_t early) { return segment_.last(early); }

 private:
  std::unique_ptr<fabric::Connecting> connecting_;
  std::span<std::byte> segment_;
  std::unique_ptr<fabric::Connection> connection_;
};

// As one does that took them back from another connection while the receiver let this one in.
TEST_F(MailboxEarly, MessagesThatAreThereOnlyAfterTheConnectionWasLetInArriveToo) {
  constexpr std::size_t kArea = 8192;
  Mailbox to = listening();
  HostileConnector connector(to.local(), kArea);
  while ((connector.page().early & layout::kMailboxEarlyClaimed) == 0) (void)to.wait(1ms);
  connector.attach(kArea, 24, 7);
  connector.grant();
  std::vector<std::byte> buffer(100);
  Mailbox::Peer from = Mailbox::kNoPeer;
  EXPECT_EQ(to.receive(buffer, from, kTimeout).bytes, 24U);
  EXPECT_EQ(buffer.front(), std::byte{7});
}

TEST_F(MailboxEarly, AMessageThatIsLookedAtStaysInPlaceWhenMoreCome) {
  constexpr std::size_t kArea = 8192;
  Mailbox to = listening();
  HostileConnector connector(to.local(), kArea);
  connector.attach(kArea, 24, 7);
  Mailbox::Piece piece;
  while (!to.try_peek(piece).ok()) (void)to.wait(1ms);
  connector.attach(kArea, 4000, 8);
  connector.grant();
  while ((connector.page().early & layout::kMailboxEarlyClaimed) == 0) (void)to.progress();
  EXPECT_EQ(piece.bytes.first.size(), 24U);
  EXPECT_TRUE(std::all_of(piece.bytes.first.begin(), piece.bytes.first.end(),
                          [](std::byte byte) { return byte == std::byte{7}; }));
  to.consume(piece, 24);
  std::vector<std::byte> buffer(4000);
  Mailbox::Peer from = Mailbox::kNoPeer;
  EXPECT_EQ(to.receive(buffer, from, kTimeout).bytes, 4000U);
  EXPECT_EQ(buffer.back(), std::byte{8});
}

TEST_F(MailboxEarly, NonsenseInPlaceOfMessagesEndsThePairAlone) {
  constexpr std::uint32_t kArea = 8192;
  struct Nonsense {
    std::uint64_t word;
    std::uint64_t length;
  };
  for (const Nonsense nonsense : {Nonsense{kArea + 8, 8}, Nonsense{UINT64_MAX & ~std::uint64_t{7}, 8}, Nonsense{64, 57},
                                  Nonsense{64, UINT64_MAX}, Nonsense{64, 48}, Nonsense{8, 1}}) {
    Mailbox to = listening();
    HostileConnector hostile(to.local(), kArea);
    std::memcpy(hostile.area(kArea).data(), &nonsense.length, sizeof nonsense.length);
    std::memset(hostile.area(kArea).data() + sizeof nonsense.length, 0xff, 512);
    hostile.page().early = nonsense.word;
    EXPECT_EQ(wait_for_loss(to).error, EPROTO) << nonsense.word << ", " << nonsense.length;
    Mailbox from(options());
    ASSERT_TRUE(send(from, from.connect(to.local()), 3));
    ASSERT_TRUE(receive(to, 3));
  }
}

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

  /// False: a message was lost, doubled or out of order, on this side, which says so, or on the other.
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
