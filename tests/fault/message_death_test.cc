// SPDX-License-Identifier: Apache-2.0
// Publishers and subscribers killed with SIGKILL at any moment: what was published is read, what was held is reclaimed.
#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "tests/fault/fault.hpp"

namespace wherry::fault {
namespace {

constexpr std::size_t kPool = 1 << 20;
constexpr std::size_t kMessage = 1 << 14;

/// The number of the message in its first and last bytes.
void write_number(std::span<std::byte> bytes, std::uint64_t number) {
  std::memcpy(bytes.data(), &number, sizeof number);
  std::memcpy(bytes.data() + bytes.size() - sizeof number, &number, sizeof number);
}

std::uint64_t number_in(std::span<const std::byte> bytes) {
  std::uint64_t first = 0, last = 0;
  std::memcpy(&first, bytes.data(), sizeof first);
  std::memcpy(&last, bytes.data() + bytes.size() - sizeof last, sizeof last);
  EXPECT_EQ(first, last) << "written while it is read";
  return first;
}

class MessageDeath : public FaultTest {
 protected:
  [[nodiscard]] static Result publish(Publisher& publisher, std::uint64_t number) {
    Loan loan;
    const Result loaned = publisher.loan(loan, kMessage, kTimeout);
    if (!loaned.ok()) return loaned;
    write_number(loan.bytes(), number);
    return publisher.publish(loan, kTimeout);
  }

  /// Takes, and keeps some for a while, until it is killed.
  void take_for_ever(const std::string& where, SubscriberOptions options, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Subscriber subscriber(options);
    subscriber.connect(where, kTimeout);
    std::vector<Message> kept(options.queue / 2);
    while (true) {
      Message message;
      if (!subscriber.take(message).ok()) return;
      (void)number_in(message.bytes());
      scene_->ready = true;
      kept[random() % kept.size()] = std::move(message);
    }
  }

  static void expect_the_whole_pool_back(Publisher& publisher) {
    Loan all;
    const Result result = publisher.loan(all, kPool, kTimeout);
    EXPECT_TRUE(result.ok()) << result.error;
  }
};

TEST_F(MessageDeath, OfASubscriberFreesWhatItHeldAndABlockedPublisher) {
  std::mt19937_64 random(1);
  for (std::uint64_t round = 0; round < 20; ++round) {
    reset_scene();
    Publisher publisher({.pool_bytes = kPool});
    publisher.listen(address());
    const auto overflow = round % 2 == 0 ? Overflow::wait : Overflow::drop_oldest;
    const Child victim([&, where = publisher.local().to_string()] {
      take_for_ever(where, {.queue = 8, .overflow = overflow}, round);
      return true;
    });
    publisher.admit(1, kTimeout);
    const Child killer = killer_of(victim, std::chrono::microseconds(random() % 3000));
    std::uint64_t number = 0;
    while (publisher.subscribers() != 0) ASSERT_TRUE(publish(publisher, number++).ok());
    noticed();
    expect_the_whole_pool_back(publisher);
  }
}

TEST_F(MessageDeath, OfOneSubscriberLosesNothingOfTheOthers) {
  Publisher publisher({.pool_bytes = kPool});
  publisher.listen(address());
  const std::string where = publisher.local().to_string();
  constexpr std::uint64_t kCount = 20'000;
  Child steady([&] {
    Subscriber subscriber({.queue = 8});
    subscriber.connect(where, kTimeout);
    Message message;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      if (!subscriber.take(message, kTimeout).ok() || number_in(message.bytes()) != i) return false;
    }
    return !HasFailure();
  });
  publisher.admit(1, kTimeout);
  std::mt19937_64 random(2);
  std::uint64_t number = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const Child victim([&] {
      take_for_ever(where, {.queue = 8}, round);
      return true;
    });
    publisher.admit(2, kTimeout);
    for (std::uint64_t i = random() % 200; i > 0; --i) ASSERT_TRUE(publish(publisher, number++).ok());
    victim.kill();
    for (std::uint64_t i = random() % 200; i > 0; --i) ASSERT_TRUE(publish(publisher, number++).ok());
  }
  while (number < kCount) ASSERT_TRUE(publish(publisher, number++).ok());
  EXPECT_EQ(steady.wait(), 0);
  expect_the_whole_pool_back(publisher);
}

TEST_F(MessageDeath, OfAPublisherLosesNothingThatItPublished) {
  std::mt19937_64 random(3);
  for (std::uint64_t round = 0; round < 20; ++round) {
    reset_scene();
    Subscriber subscriber({.queue = 16});
    subscriber.listen(address());
    const Child victim([&, where = subscriber.local().to_string()] {
      Publisher publisher({.pool_bytes = kPool});
      publisher.connect(where, kTimeout);
      for (std::uint64_t i = 0; publish(publisher, i).ok(); ++i) {
        scene_->accepted_bytes = i + 1;
        scene_->ready = true;
      }
      return true;
    });
    subscriber.admit(1, kTimeout);
    const Child killer = killer_of(victim, std::chrono::microseconds(random() % 3000));
    std::vector<Message> held(8);
    Message message;
    std::uint64_t taken = 0;
    Result result;
    while ((result = subscriber.take(message, kTimeout)).ok()) {
      ASSERT_EQ(number_in(message.bytes()), taken);
      held[taken++ % held.size()] = std::move(message);
    }
    noticed();
    EXPECT_EQ(result.error, ECONNRESET);
    EXPECT_GE(taken, scene_->accepted_bytes);
    for (std::size_t i = 0; i < held.size() && i < taken; ++i) {
      EXPECT_EQ(number_in(held[i].bytes()) % held.size(), i) << "what was taken stays readable";
    }
  }
}

}  // namespace
}  // namespace wherry::fault
