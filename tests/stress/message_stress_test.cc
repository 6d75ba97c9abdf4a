// SPDX-License-Identifier: Apache-2.0
// Millions of messages through queues so small that publishers sleep all the time, from processes that doze at random
// moments: no lost wake-up (the watchdog's to find), none lost, none twice, each publisher's in order.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include <wherry/message.hpp>

#include "base/child_process.hpp"
#include "tests/stress/options.hpp"

namespace wherry::stress {
namespace {

struct Case {
  const char* name;
  std::size_t publishers;
  std::size_t queue;
  std::size_t held;     ///< how many messages the subscriber keeps before it releases the oldest
  std::size_t bytes;    ///< of a message; the pool has 4 KiB
  std::uint64_t share;  ///< this part of the operations: one in so many
};

struct Numbered {
  std::uint64_t publisher;
  std::uint64_t number;
};

class MessageStress : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static std::uint64_t each() { return options().operations / GetParam().share / GetParam().publishers; }

  static void doze(std::mt19937_64& random) {
    const std::uint64_t die = random() % 4096;
    if (die == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    if (die < 8) std::this_thread::yield();
  }

  static bool publish_all(const std::string& where, std::uint64_t publisher) {
    std::mt19937_64 random(options().seed + publisher);
    Publisher out({.pool_bytes = 4096});
    out.connect(where, kConnectTimeout);
    Loan loan;
    for (std::uint64_t i = 0; i < each(); ++i) {
      if (!out.loan(loan, GetParam().bytes).ok()) return false;
      const Numbered content{publisher, i};
      std::memcpy(loan.bytes().data(), &content, sizeof content);
      if (!out.publish(loan).ok()) return false;
      doze(random);
    }
    return true;
  }
};

TEST_P(MessageStress, NothingIsLostAndNobodySleepsForEver) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(options().seed));
  Subscriber subscriber({.queue = GetParam().queue});
  subscriber.listen("wherry+shm://*:*");
  const std::string where = subscriber.local().to_string();
  std::deque<Child> children;
  for (std::uint64_t i = 0; i < GetParam().publishers; ++i) {
    children.emplace_back([&, i] { return publish_all(where, i); });
  }
  subscriber.admit(GetParam().publishers, kConnectTimeout);
  std::mt19937_64 random(options().seed);
  std::vector<std::uint64_t> next(GetParam().publishers);
  std::deque<Message> held(GetParam().held);
  for (std::uint64_t i = 0; i < each() * GetParam().publishers; ++i) {
    held.emplace_back();
    ASSERT_TRUE(subscriber.take(held.back()).ok());
    Numbered content{};
    ASSERT_EQ(held.back().bytes().size(), GetParam().bytes);
    std::memcpy(&content, held.back().bytes().data(), sizeof content);
    ASSERT_LT(content.publisher, next.size());
    ASSERT_EQ(content.number, next[content.publisher]++);
    held.pop_front();
    doze(random);
  }
  held.clear();
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, MessageStress,
    ::testing::Values(Case{"one_queue_of_1", 1, 1, 0, 16, 10}, Case{"one_queue_of_2", 1, 2, 0, 16, 10},
                      Case{"one_queue_of_8_held", 1, 8, 5, 16, 10}, Case{"one_pool_of_2", 1, 8, 0, 2048, 10},
                      Case{"three_queues_of_4", 3, 4, 0, 16, 10}, Case{"eight_queues_of_2_held", 8, 2, 1, 16, 20}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace wherry::stress
