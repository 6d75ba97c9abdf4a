// SPDX-License-Identifier: Apache-2.0
#include "arch/barrier.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

#include "arch/pause.hpp"

namespace wherry::arch {
namespace {

/// Two threads that each store a word and look at the other's, in rounds as close together as possible.
class StoreThenLook {
 public:
  static constexpr int kRounds = 10'000;

  template <class Publisher, class Sleeper>
  int rounds_in_which_neither_saw_the_other(Publisher publisher, Sleeper sleeper) {
    std::thread other([&] { take_part(0, publisher); });
    const int missed = take_part(1, sleeper);
    other.join();
    return missed;
  }

 private:
  struct alignas(64) Line {
    std::atomic<int> value{0};
  };

  void arrive(int round) {
    arrived_.value.fetch_add(1);
    while (arrived_.value.load() < 2 * round) {
      pause();
      if (++waited % 1024 == 0) std::this_thread::yield();
    }
  }

  template <class Between>
  int take_part(int side, Between between) {
    int missed = 0;
    for (int round = 1; round <= kRounds; ++round) {
      arrive(2 * round - 1);
      stored_[side].value.store(round, std::memory_order_release);
      between();
      saw_[side].value.store(stored_[1 - side].value.load(std::memory_order_acquire), std::memory_order_relaxed);
      arrive(2 * round);
      if (saw_[0].value.load() < round && saw_[1].value.load() < round) ++missed;
    }
    return missed;
  }

  Line arrived_;
  Line stored_[2];
  Line saw_[2];
  static thread_local unsigned waited;
};
thread_local unsigned StoreThenLook::waited = 0;

TEST(Barrier, OfTwoFencedSidesAtLeastOneSeesTheOther) {
  EXPECT_EQ(StoreThenLook().rounds_in_which_neither_saw_the_other(publish_then_look, publish_then_look), 0);
}

TEST(Barrier, AnInterruptStandsInForThePublishersFence) {
  if (!takes_part_in_interrupts()) GTEST_SKIP() << "this kernel does not interrupt";
  EXPECT_EQ(StoreThenLook().rounds_in_which_neither_saw_the_other(publish_then_look_unfenced, interrupt_publishers), 0);
}

TEST(Barrier, AForkedChildTakesPartToo) {
  if (!takes_part_in_interrupts()) GTEST_SKIP() << "this kernel does not interrupt";
  std::latch forked(1);
  std::thread other([&] { forked.wait(); });  // the parent has threads, the child has none
  const pid_t child = ::fork();
  if (child == 0) ::_exit(takes_part_in_interrupts() ? 0 : 1);
  forked.count_down();
  other.join();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace wherry::arch
