// SPDX-License-Identifier: Apache-2.0
// A hostile process at the other end of a pair of mailboxes: it shakes hands as it should, then writes what it should
// not over every word it was given, while this side works with others.
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "fabric/fabric.hpp"
#include "layout/mailbox_page.hpp"
#include "tests/common/hostile_peer.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

constexpr std::size_t kBudget = 4096;

class MailboxHostile : public FaultTest {
 protected:
  static fabric::Offer offer(std::uint32_t header) {
    const layout::MailboxGreeting greeting{.magic = layout::kMailboxMagic,
                                           .version = layout::kMailboxVersion,
                                           .mailbox = 666,
                                           .header = header,
                                           .listens = 0,
                                           .node = 0,
                                           .port = 0,
                                           .reserved0 = {},
                                           .overflow = kBudget,
                                           .early = 0,
                                           .claims = 0,
                                           .reserved = {}};
    fabric::Offer offer{.segment_bytes = 8192};
    std::memcpy(offer.greeting.data(), &greeting, sizeof greeting);
    return offer;
  }
  static std::unique_ptr<fabric::Connection> shake_hands(const Address& where, std::uint32_t header = 128) {
    return wherry::shake_hands(where, offer(header));
  }
  /// Values that mean something to a section, or nothing.
  static std::uint64_t word(std::mt19937_64& random) {
    switch (random() % 4) {
      case 0:
        return (1 + random() % 4) << 32 | random() % 200;
      case 1:
        return random() % 4;
      case 2:
        return random() % (2 * kBudget);
      default:
        return random();
    }
  }
  /// The bell page, the words, and the section behind them. Now and then as a peer would: by a little more.
  [[noreturn]] static void scribble(fabric::Connection& connection, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    auto* const bells = reinterpret_cast<layout::Word*>(connection.map() - layout::segment_place(true));
    auto* const words = reinterpret_cast<layout::Word*>(connection.map());
    auto* const page = reinterpret_cast<layout::MailboxPage*>(connection.map());
    for (std::uint64_t turn = 0;; ++turn) {
      if (turn % 16 == 0) bells[random() % 24] = word(random);
      if (seed % 2 == 0) words[8 + random() % 32] = word(random);
      if (seed % 2 == 1) page->tail.fetch_add(random() % 3 == 0 ? 8 : 0);
      if (seed % 4 == 3) page->ack = page->ack + random() % 2;
      if (seed % 8 == 7 && random() % 8 == 0) page->ack = page->ack ^ layout::kMailboxInOverflow;
      if (turn % 32 == 0) page->overflow = random() % 4 == 0 ? 0 : 1 + page->tail;
      if (turn % 8 == 0) page->inlined = layout::mailbox_inlined(page->tail, random() % 128);
      words[sizeof *page / 8 + random() % (kBudget / 8)] = word(random);
      connection.announce(random() % 2 == 0 ? fabric::Bell::data : fabric::Bell::space);
    }
  }
};

TEST_F(MailboxHostile, APeerThatWritesOverEverythingSpoilsOnlyItsOwnPair) {
  constexpr std::uint64_t kCount = 2000;
  for (std::uint64_t round = 0; round < 16; ++round) {
    reset_scene();
    Mailbox mailbox({.budget = kBudget,
                     .layout = round % 2 == 0 ? Layout::equal : Layout::adaptive,
                     .overflow = round % 4 < 2 ? 2 * kBudget : 0});
    mailbox.listen(Address::parse(address()));
    Child hostile([&]() -> bool {
      const auto connection = shake_hands(mailbox.local());
      scribble(*connection, round);
    });
    // It may be lost before this side looks.
    Mailbox::Loss lost{};
    while (mailbox.peers() == 0 && mailbox.losses(std::span(&lost, 1)) == 0) mailbox.wait(1ms);
    Child honest([&, where = mailbox.local()] {
      Mailbox sender;
      const Mailbox::Peer peer = sender.connect(where);
      for (std::uint64_t i = 0; i < kCount; ++i) {
        if (!sender.send(peer, pattern_.bytes(i % 500, i), kTimeout).ok()) return false;
      }
      return true;
    });
    std::uint64_t whole = 0, position = 0;
    while (whole < kCount) {
      Mailbox::Piece piece;
      // What the hostile one sends is consumed, and it is sent to: nothing of that may harm the others.
      (void)mailbox.try_send(0, pattern_.bytes(100));
      if (!mailbox.try_peek(piece).ok()) {
        mailbox.wait(1ms);
        std::array<Mailbox::Loss, 2> losses;
        (void)mailbox.losses(losses);
        continue;
      }
      if (piece.from != 0) {
        ASSERT_EQ(piece.message_bytes, whole % 500);
        ASSERT_EQ(piece.offset, position);
        ASSERT_TRUE(pattern_.matches(piece.bytes.first, whole + position));
        ASSERT_TRUE(pattern_.matches(piece.bytes.second, whole + position + piece.bytes.first.size()));
        position += piece.bytes.size();
        if (position == piece.message_bytes) ++whole, position = 0;
      }
      mailbox.consume(piece, piece.bytes.size());
    }
    EXPECT_EQ(honest.wait(), 0);
  }
}

TEST_F(MailboxHostile, ANonsensicalGreetingIsNotLetIn) {
  Mailbox mailbox;
  mailbox.listen(Address::parse(address()));
  for (const std::uint32_t header : {0U, 63U, 65U, 1U << 30}) {
    Child hostile([&] {
      try {
        (void)shake_hands(mailbox.local(), header);
      } catch (const Error& error) {
        return error.code().value() == ECONNREFUSED;
      }
      return false;
    });
    std::thread waiting([&] {
      EXPECT_EQ(hostile.wait(), 0);
      mailbox.interrupt();
    });
    mailbox.wait();  // for nothing else: no peer, no loss
    waiting.join();
    EXPECT_EQ(mailbox.peers(), 0U);
  }
}

}  // namespace
}  // namespace wherry::fault
