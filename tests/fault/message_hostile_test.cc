// SPDX-License-Identifier: Apache-2.0
// A hostile process at the other end of messages: it shakes hands as it should, then writes what it should not over
// every word it was given, while this side works.
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "message/handshake.hpp"
#include "tests/common/hostile_peer.hpp"
#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

constexpr std::uint32_t kPlaces = 8;
constexpr std::size_t kPool = 1 << 16;

class MessageHostile : public FaultTest {
 protected:
  /// Values that mean something to a queue, or nothing.
  static std::uint64_t word(std::mt19937_64& random) {
    const std::uint64_t lap = random() % 8, ticket = random() % (std::uint64_t{2} * kPlaces);
    switch (random() % 5) {
      case 0:
        return lap << layout::kMessageTicketBits | ticket;
      case 1:
        return lap << layout::kMessageLengthBits | random() % (2 * kPool);
      case 2:
        return (random() % (2 * kPool / layout::kMessageGrain)) << layout::kMessageTicketBits | ticket;
      case 3:
        return random() % 64;
      default:
        return random();
    }
  }

  /// The bell page, the page, and the ring behind it.
  [[noreturn]] static void scribble(fabric::Connection& connection, std::size_t ring_words, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    auto* const bells = reinterpret_cast<layout::Word*>(connection.map() - layout::kBellPageBytes);
    auto* const page = reinterpret_cast<layout::Word*>(connection.map());
    auto* const ring = reinterpret_cast<layout::Word*>(connection.map() + layout::kMessagePageBytes);
    for (std::uint64_t turn = 0;; ++turn) {
      if (turn % 16 == 0) bells[random() % 24] = word(random);
      if (turn % 64 == 0) page[8 + random() % 16] = seed % 2 == 0 ? 0 : word(random);
      ring[random() % ring_words] = word(random);
      connection.announce(random() % 2 == 0 ? fabric::Bell::data : fabric::Bell::space);
    }
  }
};

TEST_F(MessageHostile, ASubscriberThatWritesOverEverythingSpoilsOnlyItsOwn) {
  constexpr std::uint64_t kCount = 300;
  for (std::uint64_t round = 0; round < 20; ++round) {
    reset_scene();
    Publisher publisher({.pool_bytes = kPool});
    publisher.listen(address());
    Child honest([&, where = publisher.local().to_string()] {
      Subscriber subscriber({.queue = 4});
      subscriber.connect(where, kTimeout);
      Message message;
      for (std::uint64_t i = 0; i < kCount; ++i) {
        if (!subscriber.take(message, kTimeout).ok() || !pattern_.matches(message.bytes(), i)) return false;
      }
      return true;
    });
    publisher.admit(1, kTimeout);
    Child hostile([&]() -> bool {
      const auto overflow = round % 4 < 2 ? Overflow::wait : Overflow::drop_oldest;
      const auto connection = shake_hands(publisher.local(), message::subscribers_offer(kPlaces, overflow));
      scene_->ready = true;
      scribble(*connection, kPlaces, round);
    });
    while (!scene_->ready) publisher.admit();
    std::uint64_t published = 0;
    Loan loan;
    // Whatever it says, a call comes back.
    for (int call = 0; call < 200 && published < kCount; ++call) {
      Result result = publisher.loan(loan, 4000, 1ms);
      if (result.ok()) {
        pattern_.fill(loan.bytes(), published);
        result = publisher.publish(loan, 1ms);
        published += result.ok() ? 1 : 0;
      }
      ASSERT_TRUE(result.ok() || result.error == ETIMEDOUT) << result.error;
    }
    hostile.kill();
    hostile.wait();
    while (published < kCount) {
      ASSERT_TRUE(publisher.loan(loan, 4000, kTimeout).ok());
      pattern_.fill(loan.bytes(), published++);
      ASSERT_TRUE(publisher.publish(loan, kTimeout).ok());
    }
    EXPECT_EQ(honest.wait(), 0) << "round " << round << ": what it held was written over, or lost";
    EXPECT_TRUE(publisher.loan(loan, kPool, kTimeout).ok());
  }
}

TEST_F(MessageHostile, APublisherThatWritesOverEverythingNeverLeadsOutsideItsPool) {
  constexpr std::uint64_t kCount = 300;
  for (std::uint64_t round = 0; round < 20; ++round) {
    reset_scene();
    Subscriber subscriber({.queue = kPlaces, .overflow = round % 4 < 2 ? Overflow::wait : Overflow::drop_oldest});
    subscriber.listen(address());
    const Child hostile([&]() -> bool {
      const auto pool = fabric::find("shm").share(kPool);
      const auto connection = shake_hands(subscriber.local(), message::publishers_offer(pool));
      scene_->ready = true;
      scribble(*connection, std::size_t{2} * kPlaces, round);
    });
    while (!scene_->ready) subscriber.admit();
    Child honest([&, where = subscriber.local().to_string()] {
      Publisher publisher({.pool_bytes = kPool});
      publisher.connect(where, kTimeout);
      Loan loan;
      for (std::uint64_t i = 0; i < kCount; ++i) {
        if (!publisher.loan(loan, 4000, kTimeout).ok()) return false;
        pattern_.fill(loan.bytes(), i);
        if (!publisher.publish(loan, kTimeout).ok()) return false;
        while (round % 4 >= 2 && scene_->accepted_bytes <= i) std::this_thread::yield();
      }
      return true;
    });
    std::uint64_t taken = 0;
    Message message;
    while (taken < kCount) {
      const Result result = subscriber.take(message, 1ms);
      if (result.ok() && message.publisher().pid == honest.pid()) {
        ASSERT_TRUE(pattern_.matches(message.bytes(), taken));
        scene_->accepted_bytes = ++taken;
      } else if (result.ok() && result.bytes != 0) {
        // Read, so that a range outside what is mapped would be felt.
        (void)*static_cast<const volatile std::byte*>(&message.bytes().front());
        (void)*static_cast<const volatile std::byte*>(&message.bytes().back());
      } else if (!result.ok()) {
        ASSERT_TRUE(result.error == ETIMEDOUT || result.error == EPROTO || result.error == ECONNRESET) << result.error;
      }
    }
    message.release();
    EXPECT_EQ(honest.wait(), 0);
  }
}

}  // namespace
}  // namespace wherry::fault
