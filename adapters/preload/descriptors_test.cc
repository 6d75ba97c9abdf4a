// SPDX-License-Identifier: Apache-2.0
#include "descriptors.hpp"

#include <wherry/file_path.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>

#include "file/mapped/guarded_copy.hpp"
#include "file/mapped/mapped_file.hpp"
#include "file/mapped/progress.hpp"
#include "reads.hpp"
#include "sharing.hpp"
#include "tests/common/in_child.hpp"

namespace wherry::preload {
namespace {

/// A descriptor of this program's own file, whose entry starts a new generation.
class Descriptors : public testing::Test {
 protected:
  Descriptors() : fd_(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) { opened_alone(fd_, Access::reads); }
  ~Descriptors() override {
    forget(fd_);
    close(fd_);
  }

  State state() const { return entry_of(fd_)->load(); }
  off_t offset_of_kernel() const { return lseek(fd_, 0, SEEK_CUR); }
  void own() { own_offset(fd_, *entry_of(fd_), state()); }
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

TEST_F(Descriptors, AnOffsetTooFarStaysTheKernels) {
  if (lseek(fd_, static_cast<off_t>(State::kNumbers), SEEK_SET) < 0) GTEST_SKIP() << "no such offsets here";
  own();
  EXPECT_EQ(state().mode(), Mode::shared);
}

// One thread takes the offset and one sets it. Either may be first, but both take effect.
TEST_F(Descriptors, AnOffsetThatIsSetWhileItIsTakenIsNotLost) {
  std::atomic<off_t> begun = 0;
  std::atomic<off_t> done = 0;
  constexpr off_t kRounds = 5'000;
  std::thread other([&] {
    for (off_t i = 1; i <= kRounds; i++) {
      while (begun != i) sched_yield();
      lseek_here(fd_, i, SEEK_SET);
      done = i;
    }
  });
  off_t lost = 0;
  for (off_t i = 1; i <= kRounds; i++) {
    lseek(fd_, 0, SEEK_SET);
    opened_alone(fd_, Access::reads);
    begun = i;
    own();
    while (done != i) sched_yield();
    lost += lseek_here(fd_, 0, SEEK_CUR) == i ? 0 : 1;
  }
  other.join();
  EXPECT_EQ(lost, 0);
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
  opened_alone(fd_, Access::reads);
  EXPECT_EQ(state().mode(), Mode::unknown);
}

TEST_F(Descriptors, AfterACloseWhatWasKnownOfTheNumberIsOfAnotherGeneration) {
  own();
  const State before = state();
  forget(fd_);
  EXPECT_EQ(state().mode(), Mode::unknown);
  EXPECT_NE(state().generation(), before.generation());
}

// A thread that has read the file before may store its progress after another one has closed and opened.
TEST_F(Descriptors, AChosenPathIsNotThatOfTheNextFileWithTheNumber) {
  ASSERT_EQ(wherry_fd_set_path(fd_, WHERRY_PATH_CACHE), 0);
  Entry& entry = *entry_of(fd_);
  EXPECT_EQ(entry.choice, Choice::cache);
  const std::uint64_t late = entry.progress;
  opened_alone(fd_, Access::reads);
  entry.progress = late;
  EXPECT_EQ(entry.choice, Choice::none);
}

// One thread opens, and one is about to fork: one of the two sees the other, in any order.
TEST_F(Descriptors, NoDescriptorIsThisProcesssOwnAtTheMomentOfAFork) {
  std::atomic<bool> over = false;
  std::thread opener([&] {
    while (!over) {
      opened_alone(fd_, Access::reads);
      own();
    }
  });
  for (int i = 0; i < 300; i++) {
    const AllShared shared;
    const Mode mode = settled(*entry_of(fd_)).mode();
    // `own` for a moment, until its opener has checked for forks under way.
    EXPECT_NE(mode, Mode::user);
  }
  over = true;
  opener.join();
}

// Where it does, the policy is not asked.
TEST(Progress, AReadThatGoesOnIsMadeAsThePolicySays) {
  using file::mapped::Progress;
  using Way = Progress::Way;
  const file::mapped::MappedFile file;
  std::atomic<std::uint64_t> progress{0};
  std::mt19937_64 random(1);
  int answers = 0;
  for (int i = 0; i < 100'000; i++) {
    Progress before;
    before.policy = {.end = random() >> (24 + random() % 40), .way = static_cast<Way>(random() % 3)};
    progress = before.word();
    const std::uint64_t offset = before.policy.end + (random() % 4 == 0 ? random() % 9 : 0);
    const std::uint64_t bytes = 1 + (random() >> (34 + random() % 30));
    const Way way = i % 2 == 0 ? Way::in_place : Way::kernels;
    const bool continues = Progress::try_continue(progress, way, offset, bytes);
    const std::uint64_t noted = progress;
    if (continues) {
      answers++;
      EXPECT_EQ(before.policy.in_place(file, offset, bytes), way == Way::in_place);
    }
    EXPECT_EQ(noted, before.word());
  }
  EXPECT_GT(answers, 10'000);
}

TEST_F(Descriptors, AMappingThatGoesWaitsForAnOffsetThatIsMoved) {
  struct stat status{};
  ASSERT_EQ(fstat(fd_, &status), 0);
  if (!entry_of(fd_)->file.map(fd_, status, static_cast<std::uintptr_t>(fd_), revoke_mapping)) {
    GTEST_SKIP() << "no guarded copies on this processor";
  }
  const State moving = state().with(Mode::moving, 0);
  State before = state();
  ASSERT_TRUE(entry_of(fd_)->exchange(before, moving));
  std::atomic<bool> begun = false;
  std::thread dropper([&] {
    begun = true;
    drop_mapping(fd_);
  });
  while (!begun) sched_yield();
  for (int i = 0; i < 1000; i++) sched_yield();
  State there = moving;
  EXPECT_TRUE(entry_of(fd_)->exchange(there, moving.with(Mode::shared, 0)));
  dropper.join();
  EXPECT_EQ(state().mode(), Mode::shared);
  EXPECT_FALSE(entry_of(fd_)->file.is_mapped());
}

// A handler that leaves by a jump would leave the fields half stored, and the lock held.
TEST_F(Descriptors, NoHandlerRunsWhileFieldsAreStored) {
  sigset_t mask;
  {
    const SetupLock lock(fd_);
    ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
  }
  EXPECT_EQ(sigismember(&mask, SIGALRM), 1);
  EXPECT_EQ(sigismember(&mask, SIGSEGV), 1) << "another process may send it";
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
  EXPECT_EQ(sigismember(&mask, SIGALRM), 0);
}

TEST_F(Descriptors, OneThreadAtATimeStoresFields) {
  const SetupLock first(fd_);
  EXPECT_TRUE(static_cast<bool>(first));
  const SetupLock second(fd_ + 1);
  EXPECT_FALSE(static_cast<bool>(second));
}

TEST_F(Descriptors, NothingIsTrackedWhileADescriptorIsClosed) {
  {
    const Closing closing(fd_);
    EXPECT_EQ(state().mode(), Mode::never);
  }
  EXPECT_EQ(state().mode(), Mode::unknown);
  {
    const Closing closing(fd_);
    opened_alone(fd_, Access::reads);
  }
  EXPECT_EQ(state().mode(), Mode::own) << "the number was opened again before close() returned";
}

/// Maps the file as the holder of the lock, while `end` runs in another thread. Returns whether the file is unmapped
/// when `end` returns. `end` begins another generation, or ends all setups, before the file is mapped.
template <typename End>
bool is_unmapped_by(int fd, End end) {
  Entry& entry = *entry_of(fd);
  std::atomic<bool> has_lock = false;
  std::thread mapper([&] {
    const SetupLock lock(fd);
    const State before = entry.load();
    has_lock = true;
    while (entry.load().word == before.word) sched_yield();
    for (int i = 0; i < 1000; i++) sched_yield();
    struct stat status{};
    fstat(fd, &status);
    entry.file.map(fd, status, static_cast<std::uintptr_t>(fd), revoke_mapping);
  });
  while (!has_lock) sched_yield();
  end();
  const bool unmapped = !entry.file.is_mapped();
  mapper.join();
  return unmapped && !entry.file.is_mapped();
}

// A mapping would keep the locks of the open file, and its space on the disk.
TEST_F(Descriptors, AMapUnderWayIsUndoneBeforeTheDescriptorIsClosed) {
  if (!file::mapped::can_guard_copies()) GTEST_SKIP() << "no guarded copies on this processor";
  EXPECT_TRUE(is_unmapped_by(fd_, [this] { const Closing closing(fd_); }));
  EXPECT_TRUE(is_unmapped_by(fd_, [this] { forget(fd_); }));
  EXPECT_TRUE(is_unmapped_by(fd_, [this] { never_track(fd_); }));
}

TEST_F(Descriptors, ACloseDoesNotWaitForAMapOfAnotherDescriptor) {
  const SetupLock lock(fd_ + 1);
  ASSERT_TRUE(static_cast<bool>(lock));
  const Closing closing(fd_);
}

TEST_F(Descriptors, NoFileIsMappedOnceAllAreSharedForGood) {
  if (!file::mapped::can_guard_copies()) GTEST_SKIP() << "no guarded copies on this processor";
  test::in_child([this] {
    Entry& entry = *entry_of(fd_);
    EXPECT_TRUE(is_unmapped_by(fd_, share_all_for_good));
    EXPECT_EQ(entry.load().mode(), Mode::unknown);
    EXPECT_EQ(entry_of(fd_), nullptr);
    EXPECT_FALSE(static_cast<bool>(SetupLock(fd_)));
  });
}

}  // namespace
}  // namespace wherry::preload
