// SPDX-License-Identifier: Apache-2.0
#include "file/mount/lock_waits.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace wherry::file::mount {
namespace {

const auto kNothing = [] {};

struct LockWaitsTest : testing::Test {
  LockWaitsTest() { waits.start(); }
  /// Adds a wait whose attempts return `comes_to`. Returns its answer.
  std::future<int> add(const void* who, const std::atomic<int>& comes_to,
                       const std::function<void()>& announce = kNothing, int most_attempts = 0) {
    auto promise = std::make_shared<std::promise<int>>();
    waits.add({.id = who,
               .node = 1,
               .attempt = [&comes_to] { return comes_to.load(); },
               .answer = [promise](int error) { promise->set_value(error); },
               .most_attempts = most_attempts},
              announce);
    return promise->get_future();
  }

  LockWaits waits;
  std::atomic<int> result{EAGAIN};
  int id = 0;
};

TEST_F(LockWaitsTest, IsAnsweredWhenAnAttemptSucceedsOrFails) {
  auto granted = add(&id, result);
  result = 0;
  EXPECT_EQ(granted.get(), 0);
  result = ESTALE;
  EXPECT_EQ(add(&id, result).get(), ESTALE);
}

TEST_F(LockWaitsTest, AnInterruptAnswersTheOneThatItNames) {
  auto interrupted = add(&id, result);
  auto other = add(&result, result);
  waits.interrupt(&id);
  EXPECT_EQ(interrupted.get(), EINTR);
  waits.interrupt(&id);
  result = 0;
  EXPECT_EQ(other.get(), 0);
}

TEST_F(LockWaitsTest, AnInterruptThatComesBeforeItIsEnteredIsNotLost) {
  EXPECT_EQ(add(&id, result, [this] { waits.interrupt(&id); }).get(), EINTR);
}

TEST_F(LockWaitsTest, AnInterruptDuringAnAttemptThatSucceedsLeavesTheLock) {
  std::promise<int> answer;
  waits.hand_over(LockWaits::prepare({.id = &id,
                                      .node = 1,
                                      .attempt =
                                          [this] {
                                            waits.interrupt(&id);
                                            return 0;
                                          },
                                      .answer = [&](int error) { answer.set_value(error); }}));
  EXPECT_EQ(answer.get_future().get(), 0);
}

TEST_F(LockWaitsTest, AnUnlockDuringAnAttemptIsNotForgotten) {
  std::atomic<int> attempts{0};
  std::promise<int> answer;
  // If a pause followed each attempt, they would add up to hours.
  constexpr int kAttempts = 200'000;
  waits.add({.node = 1,
             .attempt =
                 [&] {
                   waits.retry_now(1);
                   return ++attempts == kAttempts ? 0 : EAGAIN;
                 },
             .answer = [&](int error) { answer.set_value(error); }},
            kNothing);
  EXPECT_EQ(answer.get_future().get(), 0);
}

TEST_F(LockWaitsTest, AFileWhoseLocksAreGivenUpAllTheTimeHoldsUpNoOther) {
  constexpr int kAttempts = 200'000;
  std::atomic<int> attempts{0};
  std::promise<int> attempts_when_answered;
  waits.add({.node = 1,
             .attempt =
                 [&] {
                   waits.retry_now(1);
                   return ++attempts == kAttempts ? 0 : EAGAIN;
                 },
             .answer = [](int) {}},
            kNothing);
  waits.add(
      {.node = 2, .attempt = [] { return 0; }, .answer = [&](int) { attempts_when_answered.set_value(attempts); }},
      kNothing);
  EXPECT_LT(attempts_when_answered.get_future().get(), kAttempts);
  waits.stop();
}

TEST_F(LockWaitsTest, AnUnlockUsesUpNoAttemptsThatAreLimited) {
  constexpr int kAttempts = 5;
  std::promise<std::chrono::steady_clock::time_point> end;
  const auto begin = std::chrono::steady_clock::now();
  waits.add({.node = 1,
             .attempt =
                 [&] {
                   waits.retry_now(1);
                   return EAGAIN;
                 },
             .answer = [&](int) { end.set_value(std::chrono::steady_clock::now()); },
             .most_attempts = kAttempts},
            kNothing);
  // 1, 2, 4, 8 and 16 ms.
  EXPECT_GE(end.get_future().get() - begin, std::chrono::milliseconds(31));
}

TEST_F(LockWaitsTest, AttemptsThatAreLimitedEndWithEagain) { EXPECT_EQ(add(&id, result, kNothing, 3).get(), EAGAIN); }

TEST_F(LockWaitsTest, TheEndAnswersAllAndTakesNoMore) {
  std::vector<std::future<int>> answers;
  for (int i = 0; i < 20; ++i) answers.push_back(add(&id, result));
  waits.stop();
  for (auto& answer : answers) EXPECT_EQ(answer.get(), EIO);
  EXPECT_EQ(add(&id, result).get(), EIO);
}

TEST_F(LockWaitsTest, AnInterruptOfACallThatDoesNotWaitIsNoInterrupt) {
  EXPECT_EQ(add(&id, result, [this] { waits.interrupt(&id); }, 1000).get(), EAGAIN);
  auto later = add(&id, result, kNothing, 1000);
  waits.interrupt(&id);
  EXPECT_EQ(later.get(), EAGAIN);
}

TEST_F(LockWaitsTest, AWaitThatIsEnteredDuringTheEndIsAnsweredOnceAndBeforeIt) {
  std::atomic<int> answers{0};
  std::thread stopper;
  auto other = add(&id, result);
  waits.add({.node = 1,
             .attempt = [] { return EAGAIN; },
             .answer =
                 [&](int error) {
                   EXPECT_EQ(error, EIO);
                   ++answers;
                 }},
            [&] {
              stopper = std::thread([&] {
                waits.stop();
                EXPECT_EQ(answers, 1);
              });
              EXPECT_EQ(other.get(), EIO);
            });
  stopper.join();
  EXPECT_EQ(answers, 1);
}

TEST_F(LockWaitsTest, AnAttemptThatThrowsIsAnError) {
  std::promise<int> answer;
  waits.hand_over(LockWaits::prepare({.node = 1,
                                      .attempt = []() -> int { throw std::runtime_error("attempt"); },
                                      .answer = [&](int error) { answer.set_value(error); }}));
  EXPECT_EQ(answer.get_future().get(), EIO);
}

}  // namespace
}  // namespace wherry::file::mount
