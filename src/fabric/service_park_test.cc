// SPDX-License-Identifier: Apache-2.0
#include "fabric/service_park.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "tests/common/soak.hpp"

namespace wherry::fabric {
namespace {

using namespace std::chrono_literals;
using Clock = ServicePark::Clock;

constexpr Clock::time_point kNow{1h};

TEST(ServicePark, TheServiceServesAQueueThatNoWaiterDrives) {
  ServicePark park;
  EXPECT_FALSE(park.defer(kNow));
  EXPECT_FALSE(park.end(Bell::data));
}

TEST(ServicePark, TheServiceLeavesAloneWhatAWaiterDrives) {
  ServicePark park(1ms);
  park.drive(Bell::data, kNow);
  EXPECT_EQ(park.defer(kNow), kNow + 1ms);
  park.drive(Bell::data, kNow + 900us);
  EXPECT_EQ(park.defer(kNow + 1ms), kNow + 1900us);
}

TEST(ServicePark, AWaiterThatEndsHearsOnceOfWhatWasDeferred) {
  ServicePark park(1ms);
  park.drive(Bell::data, kNow);
  EXPECT_FALSE(park.end(Bell::data));
  park.drive(Bell::data, kNow);
  EXPECT_TRUE(park.defer(kNow));
  EXPECT_TRUE(park.end(Bell::data));
  EXPECT_FALSE(park.end(Bell::data));
  EXPECT_FALSE(park.defer(kNow));
}

TEST(ServicePark, ALeaseRunsOut) {
  ServicePark park(1ms);
  park.drive(Bell::data, kNow);
  EXPECT_TRUE(park.defer(kNow + 999us));
  EXPECT_FALSE(park.defer(kNow + 1ms));
  EXPECT_FALSE(park.end(Bell::data));
}

TEST(ServicePark, TheLastOfTwoWaitersHearsOfIt) {
  ServicePark park(1ms);
  park.drive(Bell::data, kNow);
  park.drive(Bell::space, kNow + 500us);
  EXPECT_EQ(park.defer(kNow + 600us), kNow + 1500us);
  EXPECT_FALSE(park.end(Bell::space));
  EXPECT_EQ(park.defer(kNow + 600us), kNow + 1ms);
  EXPECT_TRUE(park.end(Bell::data));
}

TEST(ServicePark, AWaiterThatWasStoppedIsNotReliedOn) {
  ServicePark park(1ms);
  park.drive(Bell::space, kNow);  // and never ends
  park.drive(Bell::data, kNow + 500us);
  EXPECT_EQ(park.defer(kNow + 1ms), kNow + 1500us);
  EXPECT_TRUE(park.end(Bell::data));
}

/// A queue as a network fabric has it: work appears by itself, and the service sleeps while it has none.
struct Queue {
  std::atomic<std::uint64_t> come{0};
  std::atomic<std::uint64_t> done{0};

  std::mutex mutex;
  std::condition_variable news;
  bool woken = false;
  bool over = false;
  ServicePark park{24h};  // no lease runs out: a lost wake-up would hang

  void drive() {
    const std::lock_guard lock(mutex);
    done.store(come.load(std::memory_order_acquire), std::memory_order_release);  // outside: the test's own
  }
  void wake() {
    {
      const std::lock_guard lock(mutex);
      woken = true;
    }
    news.notify_one();
  }
  void serve() {
    std::unique_lock lock(mutex);
    while (!over) {
      news.wait(lock, [this] { return woken || over; });
      woken = false;
      if (!park.defer(Clock::now())) done.store(come.load(std::memory_order_acquire), std::memory_order_release);
    }
  }
};

TEST(ServicePark, NoWorkIsLeftBehindWhenAWaiterEnds) {
  Queue queue;
  std::thread service([&] { queue.serve(); });
  std::mt19937 random(1);
  const std::uint64_t rounds = soaking() ? 200'000 : 3'000;
  std::atomic<std::uint64_t> wanted{0};
  std::atomic<bool> over{false};
  // The network: each piece of work rings the service, as a descriptor that becomes readable.
  std::thread network([&] {
    for (std::uint64_t sent = 0; !over;) {
      if (wanted.load(std::memory_order_acquire) == sent) {
        std::this_thread::yield();
        continue;
      }
      queue.come.store(++sent, std::memory_order_release);  // outside: the test's own
      queue.wake();
    }
  });
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    wanted.store(round, std::memory_order_release);  // outside: the test's own
    for (auto looks = random() % 20; looks > 0 && queue.done.load(std::memory_order_acquire) < round; --looks) {
      queue.park.drive(Bell::data, Clock::now());
      queue.drive();
    }
    if (queue.park.end(Bell::data)) queue.wake();
    // From here on the service alone does it.
    while (queue.done.load(std::memory_order_acquire) < round) std::this_thread::yield();
  }
  over = true;
  network.join();
  {
    const std::lock_guard lock(queue.mutex);
    queue.over = true;
  }
  queue.news.notify_one();
  service.join();
}

}  // namespace
}  // namespace wherry::fabric
