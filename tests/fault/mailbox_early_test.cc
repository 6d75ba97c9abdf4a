// SPDX-License-Identifier: Apache-2.0
// Messages that are sent before their receiver has let the sender in.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/scoped_environment.hpp"
#include "fabric/fabric.hpp"
#include "layout/mailbox_page.hpp"
#include "tests/common/no_descriptors.hpp"
#include "tests/common/temporary_directory.hpp"
#include "tests/fault/mailbox_early.hpp"

namespace wherry::fault {
namespace {

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

/// With WHERRY_HOSTS a fabric is chosen for each peer, and not every one keeps a segment. So a send waits.
TEST_F(MailboxEarly, WithAFileOfHostsNothingIsTakenBeforeTheSenderIsAccepted) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.path() / "hosts";
  std::ofstream(file) << "127.0.0.1\n127.0.0.1\n";
  const ScopedEnvironment hosts("WHERRY_HOSTS", file.c_str()), node("WHERRY_NODE", "0");
  Mailbox to(options());
  to.listen("wherry://*:*");
  {
    Mailbox from(options());
    const Mailbox::Peer peer = from.connect(to.local());
    EXPECT_FALSE(send(from, peer, 0));
    EXPECT_EQ(from.send(peer, pattern_.bytes(10), 5ms).error, ETIMEDOUT);
  }
  Mailbox from(options());
  const Mailbox::Peer peer = from.connect(to.local());
  while (!send(from, peer, 1)) {
    (void)from.progress();
    (void)to.progress();
  }
  EXPECT_TRUE(receive(to, 1));
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
  std::vector<bool> received(kSenders);
  std::vector<std::byte> buffer(kLongest);
  for (std::uint64_t count = 0; count < kSenders; ++count) {
    Mailbox::Peer from = Mailbox::kNoPeer;
    const Result result = to.receive(buffer, from, kTimeout);
    ASSERT_TRUE(result.ok()) << result.to_string();
    const std::uint64_t number = number_of(std::span(buffer).first(result.bytes), kSenders);
    ASSERT_TRUE(number < kSenders && !received[number]) << number;
    received[number] = true;
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

}  // namespace
}  // namespace wherry::fault
