// SPDX-License-Identifier: Apache-2.0
// When a program sleeps that polls and finds nothing, with a receive posted that it need not be waiting for.
#include "waiting.hpp"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <mutex>

#include "arch/barrier.hpp"
#include "tests/common/sanitizer.hpp"
#include "tests/common/time_limit.hpp"

namespace wherry::mpi {
namespace {

using namespace std::chrono_literals;

class Nobody : public Reporter {
 public:
  void sent(const Completion& /*completion*/) override {}
  void received(const Completion& /*completion*/) override {}
};

/// The parameter: the processors of the job. With none of them it is oversubscribed.
class WaitingTest : public testing::TestWithParam<std::size_t> {
 protected:
  WaitingTest() {
    waiting_.add(own_);
    ReceiveRequest later;
    later.buffers = Buffers(buffer_.data(), buffer_.size());
    later.tag = 1;
    later.tagged = true;
    EXPECT_EQ(own_.receive(later), 0);
    send();
  }
  void send() {
    SendRequest request;
    request.to = &peer_.link_to(own_.name());
    request.buffers = Buffers(buffer_.data(), 1);
    request.tagged = true;
    request.inject = true;
    int status = 0;
    while ((status = peer_.send(request)) == -FI_EAGAIN) own_.progress();
    EXPECT_EQ(status, 0);
    while (!waiting_.look()) peer_.progress();
    waiting_.moved();
  }
  /// Polls until it has slept a few times, or has used more processor time than polls before a sleep take. Returns true
  /// if it has slept.
  bool sleeps_in_a_wait() {
    rusage before{};
    ::getrusage(RUSAGE_THREAD, &before);
    const std::clock_t begin = std::clock();
    while (std::clock() - begin < CLOCKS_PER_SEC / 50) {
      const std::lock_guard guard(lock_);
      if (!waiting_.look()) waiting_.rest();
      rusage now{};
      ::getrusage(RUSAGE_THREAD, &now);
      if (now.ru_nvcsw - before.ru_nvcsw >= 3) return true;
    }
    return false;
  }

  std::array<char, 64> buffer_{};
  Nobody nobody_;
  DomainLock lock_{true};
  Messenger own_{nobody_, MailboxOptions{}, GetParam()};
  Messenger peer_{nobody_, MailboxOptions{}, GetParam()};
  Waiting waiting_{lock_};
};

TEST_P(WaitingTest, SleepsAsLongAsAndOnceMessagesEndItsWaits) {
  if (WHERRY_THREAD_SANITIZER != 0 || WHERRY_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "calls take as long as pauses";
  // A busy machine takes the processor away in between, which looks like a program that does something else: it may
  // never be seen to sleep there.
  const TimeLimit limit(60s);
  while (!sleeps_in_a_wait()) {
    if (limit.over()) GTEST_SKIP() << "others keep the processors busy";
    send();
  }
  while (sleeps_in_a_wait()) {
    if (limit.over()) GTEST_SKIP() << "others keep the processors busy";
    lock_.note_activity();
  }
  while (!sleeps_in_a_wait() && !limit.over()) send();
}

INSTANTIATE_TEST_SUITE_P(, WaitingTest, testing::Values(0U, 64U),
                         [](const auto& each) { return each.param == 0 ? "Oversubscribed" : "Alone"; });

std::int64_t used_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

std::int64_t sleeps() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

/// One of three processes that waits for a message, where a yield lets no other run.
class FewProcessorsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (WHERRY_THREAD_SANITIZER != 0 || WHERRY_ADDRESS_SANITIZER != 0) GTEST_SKIP() << "calls take as long as pauses";
  }
  struct Process {
    explicit Process(std::size_t processors) : messenger(nobody, MailboxOptions{}, processors) {
      messenger.link_to(peers[0].name());
      messenger.link_to(peers[1].name());
      waiting.add(messenger);
      ReceiveRequest request;
      EXPECT_EQ(messenger.receive(request), 0);
    }
    Nobody nobody;
    DomainLock lock{false};
    std::array<Messenger, 2> peers{Messenger(nobody, MailboxOptions{}), Messenger(nobody, MailboxOptions{})};
    Messenger messenger;
    Waiting waiting{lock, false};
  };
  /// Processor time before the first sleep: the median of several, because interrupts are part of it.
  static std::int64_t used_before_sleep() {
    std::array<std::int64_t, 9> used{};
    for (std::int64_t& each : used) {
      Process process(2);
      const std::int64_t before = sleeps();
      const std::int64_t begin = used_ns();
      while (sleeps() == before) process.waiting.rest();
      each = used_ns() - begin;
    }
    std::ranges::sort(used);
    return used[used.size() / 2];
  }
};

TEST_F(FewProcessorsTest, LooksForLongerThanAWakeUpTakesBeforeItSleeps) { EXPECT_GT(used_before_sleep(), 80'000); }

TEST_F(FewProcessorsTest, SleepsAloneThoughEachCallLooksOften) {
  Process process(3);
  const std::int64_t before = sleeps();
  while (sleeps() == before) {
    if (!process.waiting.look()) process.waiting.rest();
  }
}

TEST_F(FewProcessorsTest, LooksAFewTimesBeforeItsFirstYield) {
  Process process(2);
  int looks = 0;
  while (!process.waiting.rest()) ++looks;
  EXPECT_GE(looks, 2);
  Process crowded(1);
  EXPECT_TRUE(crowded.waiting.rest());
}

}  // namespace
}  // namespace wherry::mpi
