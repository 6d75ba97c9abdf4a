// SPDX-License-Identifier: Apache-2.0
#include "descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "sharing.hpp"

namespace wherry::preload {
namespace {

/// A descriptor of this program's own file, whose entry begins anew.
class Descriptors : public testing::Test {
 protected:
  Descriptors() : fd_(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) { opened_alone(fd_); }
  ~Descriptors() override {
    forget(fd_);
    close(fd_);
  }

  State state() const { return entry_of(fd_)->load(); }
  off_t offset_of_kernel() const { return lseek(fd_, 0, SEEK_CUR); }
  void own() { own_offset(fd_, *entry_of(fd_), state(), 0); }
  void move_to(std::uint64_t offset) {
    State before = state();
    ASSERT_TRUE(entry_of(fd_)->exchange(before, before.with(Mode::user, offset)));
  }

  int fd_;
};

TEST(State, AllThreePartsOfAWordComeBack) {
  const State state = State::of((1 << State::kGenerationBits) - 1, Mode::shared, State::kNumbers - 1);
  EXPECT_EQ(state.generation(), (1U << State::kGenerationBits) - 1);
  EXPECT_EQ(state.mode(), Mode::shared);
  EXPECT_EQ(state.number(), State::kNumbers - 1);
  EXPECT_EQ(State::of(7, Mode::own, 3 * State::kInside + 2).inside(), 3U);
  EXPECT_EQ(State::of(7, Mode::own, 3 * State::kInside + 2).spent(), 2U);
}

TEST(State, TheGenerationAfterTheLastIsAnotherAgain) {
  const State last = State::of((1 << State::kGenerationBits) - 1, Mode::unknown, 0);
  EXPECT_EQ(State::of(last.generation() + 1, Mode::own, 5).generation(), 0U);
  EXPECT_EQ(State::of(last.generation() + 1, Mode::own, 5).number(), 5U);
}

TEST(Entry, NumbersThatNoDescriptorHasHaveNone) {
  EXPECT_EQ(entry_of(-1), nullptr);
  EXPECT_EQ(entry_of(kDescriptors), nullptr);
  EXPECT_NE(entry_of(kDescriptors - 1), nullptr);
}

TEST_F(Descriptors, AnOffsetHeldHereIsTheKernelsAgainBeforeItIsShared) {
  own();
  ASSERT_EQ(state().mode(), Mode::user);
  move_to(12345);
  EXPECT_EQ(offset_of_kernel(), 0);
  share_offset(fd_);
  EXPECT_EQ(state().mode(), Mode::shared);
  EXPECT_EQ(offset_of_kernel(), 12345);
}

TEST_F(Descriptors, AnOffsetBecomesThisProcesssWhereTheKernelHasIt) {
  lseek(fd_, 77, SEEK_SET);
  own();
  EXPECT_EQ(state().mode(), Mode::user);
  EXPECT_EQ(state().number(), 77U);
}

TEST_F(Descriptors, NoOffsetIsTakenWhileAnotherCallUsesIt) {
  State before = state();
  ASSERT_TRUE(entry_of(fd_)->exchange(before, {before.word + State::kInside}));
  own();
  EXPECT_EQ(state().mode(), Mode::own);
}

TEST_F(Descriptors, WhatIsOpenedWhileAllIsSharedStaysTheKernels) {
  const AllShared shared;
  EXPECT_EQ(state().mode(), Mode::unknown);
  opened_alone(fd_);
  EXPECT_EQ(state().mode(), Mode::unknown);
}

TEST_F(Descriptors, AfterACloseWhatWasKnownOfTheNumberIsOfAnotherGeneration) {
  own();
  const State before = state();
  forget(fd_);
  EXPECT_EQ(state().mode(), Mode::unknown);
  EXPECT_NE(state().generation(), before.generation());
}

// A thread that opens, and one that is about to fork: one of the two sees the other, whatever their order.
TEST_F(Descriptors, NoDescriptorIsThisProcesssOwnAtTheMomentOfAFork) {
  std::atomic<bool> over = false;
  std::thread opener([&] {
    while (!over) {
      opened_alone(fd_);
      own();
    }
  });
  for (int i = 0; i < 300; i++) {
    const AllShared shared;
    const Mode mode = settled(*entry_of(fd_)).mode();
    // `own` for a moment, until its opener has looked for forks under way.
    EXPECT_NE(mode, Mode::user);
  }
  over = true;
  opener.join();
}

TEST_F(Descriptors, OneThreadAtATimeStoresFields) {
  const SetupLock first;
  EXPECT_TRUE(static_cast<bool>(first));
  const SetupLock second;
  EXPECT_FALSE(static_cast<bool>(second));
}

}  // namespace
}  // namespace wherry::preload
