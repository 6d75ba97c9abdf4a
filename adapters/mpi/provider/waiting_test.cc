// SPDX-License-Identifier: Apache-2.0
// A program that asks in vain, with a receive posted, which may not be what it waits for.
#include "waiting.hpp"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>
#include <sys/resource.h>

#include <array>
#include <ctime>
#include <mutex>

#include "arch/barrier.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry::mpi {
namespace {

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
  /// Asks until it has slept a few times, or has used more of the processor than any look before a sleep takes. True:
  /// it has slept.
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
  // A busy machine takes the processor away in between, which looks like a program that does something else.
  while (!sleeps_in_a_wait()) send();
  while (sleeps_in_a_wait()) lock_.note_activity();
  while (!sleeps_in_a_wait()) send();
}

INSTANTIATE_TEST_SUITE_P(, WaitingTest, testing::Values(0U, 64U),
                         [](const auto& each) { return each.param == 0 ? "Oversubscribed" : "Alone"; });

}  // namespace
}  // namespace wherry::mpi
