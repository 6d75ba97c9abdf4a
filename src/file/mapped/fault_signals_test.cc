// SPDX-License-Identifier: Apache-2.0
#include "file/mapped/fault_signals.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>

#include "arch/barrier.hpp"
#include "arch/pause.hpp"
#include "file/mapped/copies_under_way.hpp"
#include "file/mapped/guarded_copy.hpp"
#include "file/mapped/signals_blocked.hpp"
#include "tests/common/in_child.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry::file::mapped {
namespace {

using test::in_child;

constexpr int kResets = 20'000;

volatile sig_atomic_t calls = 0;
volatile sig_atomic_t last = 0;
sigjmp_buf back;

void count(int signal) {
  calls = calls + 1;
  last = signal;
}

void count_and_leave(int signal, siginfo_t* /*info*/, void* /*context*/) {
  count(signal);
  siglongjmp(back, 1);
}

bool copy_faults() {
  std::array<std::byte, 64> there;
  return !copy_or_fault(there.data(), nullptr, there.size());
}

int set(int signal, const struct sigaction& wanted, struct sigaction* before = nullptr) {
  return program_sigaction(signal, &wanted, before, ::sigaction);
}

struct sigaction with(void (*handler)(int), int flags = 0) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  return action;
}

/// The signal that ends a child that runs `body`; 0: none.
template <class Body>
int ends_by(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

class FaultSignals : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_guard_copies()) GTEST_SKIP() << "no guarded copies on this processor";
  }
};

TEST_F(FaultSignals, TheProgramsHandlerGetsItsOwnFaultsAndNoneOfACopy) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    struct sigaction action{};
    action.sa_sigaction = count_and_leave;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(set(SIGSEGV, action), 0);
    EXPECT_TRUE(copy_faults());
    EXPECT_EQ(calls, 0);
    if (sigsetjmp(back, 1) == 0) ::raise(SIGSEGV);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(last, SIGSEGV);
    EXPECT_TRUE(takes_faults()) << "siglongjmp has restored the mask";
    EXPECT_TRUE(copy_faults());
    EXPECT_EQ(calls, 1);
  });
}

TEST_F(FaultSignals, CopiesAreGuardedWhereAllSignalsAreBlockedAndASentSignalArrivesAfterwards) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    ASSERT_EQ(set(SIGSEGV, with(count)), 0);
    {
      const SignalsBlocked blocked;
      EXPECT_FALSE(takes_faults());
      for (int i = 0; i < 2; ++i) {
        const FaultsUnblocked unblocked;
        EXPECT_TRUE(takes_faults());
        EXPECT_TRUE(copy_faults());
        EXPECT_EQ(kept_faults() != 0, i > 0);
        ::raise(SIGSEGV);
        ::raise(SIGUSR1);
        EXPECT_EQ(calls, 0);
        EXPECT_EQ(kept_faults(), std::uint64_t{1} << (SIGSEGV - 1)) << "pending, as if it were blocked";
        EXPECT_TRUE(copy_faults());
      }
      sigset_t pending;
      ::sigpending(&pending);
      EXPECT_EQ(sigismember(&pending, SIGSEGV), 1);
      EXPECT_EQ(sigismember(&pending, SIGBUS), 0);
      EXPECT_FALSE(takes_faults());
      ::signal(SIGUSR1, SIG_IGN);
    }
    EXPECT_EQ(calls, 1) << "as two signals that were blocked";
    EXPECT_EQ(last, SIGSEGV);
    EXPECT_TRUE(takes_faults());
  });
}

TEST_F(FaultSignals, AnActionSetBeforeOrAfterIsReadBackAsItWasSet) {
  in_child([] {
    struct sigaction action = with(count, SA_ONSTACK | static_cast<int>(SA_RESETHAND));
    sigfillset(&action.sa_mask);
    ASSERT_EQ(::sigaction(SIGBUS, &action, nullptr), 0);
    ASSERT_TRUE(catch_faults(::sigaction));
    struct sigaction found{};
    ASSERT_EQ(program_sigaction(SIGBUS, nullptr, &found, ::sigaction), 0);
    EXPECT_EQ(found.sa_handler, count);
    EXPECT_NE(found.sa_flags & SA_ONSTACK, 0);
    EXPECT_EQ(sigismember(&found.sa_mask, SIGSEGV), 1);
    ASSERT_EQ(set(SIGBUS, with(SIG_DFL), &found), 0);
    EXPECT_EQ(found.sa_handler, count);
    ASSERT_EQ(program_sigaction(SIGBUS, nullptr, &found, ::sigaction), 0);
    EXPECT_EQ(found.sa_handler, SIG_DFL);
  });
}

TEST_F(FaultSignals, WithoutAHandlerTheProgramsOwnFaultsAndSignalsEndIt) {
  if (WHERRY_ADDRESS_SANITIZER != 0 || WHERRY_THREAD_SANITIZER != 0)
    GTEST_SKIP() << "the sanitizer handles these signals";
  const auto prepare = [] { (void)catch_faults(::sigaction); };
  EXPECT_EQ(ends_by([&] {
              prepare();
              *static_cast<volatile int*>(nullptr) = 1;
            }),
            SIGSEGV);
  EXPECT_EQ(ends_by([&] {
              prepare();
              ::raise(SIGBUS);
            }),
            SIGBUS);
  EXPECT_EQ(ends_by([&] {
              prepare();
              (void)set(SIGSEGV, with(count, static_cast<int>(SA_RESETHAND)));
              ::raise(SIGSEGV);
              ::raise(SIGSEGV);
            }),
            SIGSEGV);
}

// SA_RESETHAND, with a concurrent sigaction() of another thread.
TEST_F(FaultSignals, AnActionThatIsSetWhileAnotherIsResetIsNotLost) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    std::atomic<int> round = 0;
    std::thread other([&] {
      for (int i = 1; i <= kResets; i++) {
        while (round != 2 * i - 1) sched_yield();
        for (int wait = i % 512; wait > 0; wait--) arch::pause();
        (void)set(SIGSEGV, with(count));
        round = 2 * i;
      }
    });
    int lost = 0;
    for (int i = 1; i <= kResets; i++) {
      ASSERT_EQ(set(SIGSEGV, with(count, static_cast<int>(SA_RESETHAND))), 0);
      round = 2 * i - 1;
      ::raise(SIGSEGV);
      while (round != 2 * i) sched_yield();
      struct sigaction found{};
      ASSERT_EQ(program_sigaction(SIGSEGV, nullptr, &found, ::sigaction), 0);
      lost += found.sa_handler == count && found.sa_flags == 0 ? 0 : 1;
    }
    other.join();
    EXPECT_EQ(lost, 0);
    EXPECT_EQ(calls, kResets);
  });
}

TEST_F(FaultSignals, WhereASignalIsIgnoredNoCopyIsMade) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    ASSERT_TRUE(takes_faults());
    ASSERT_EQ(set(SIGBUS, with(SIG_IGN)), 0);
    EXPECT_FALSE(takes_faults());
    EXPECT_FALSE(catch_faults(::sigaction));
    ::raise(SIGBUS);
    ASSERT_EQ(set(SIGBUS, with(SIG_DFL)), 0);
    EXPECT_TRUE(takes_faults());
  });
}

bool kernel_ignores(int signal) {
  struct sigaction found{};
  EXPECT_EQ(::sigaction(signal, nullptr, &found), 0);
  return found.sa_handler == SIG_IGN;
}

/// Gives a thread that wrongly does not wait for this one time to continue; less than the 1 s limit of the wait.
void stay_for_a_while() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  for (int i = 0; i < 1000 && std::chrono::steady_clock::now() < end; i++) sched_yield();
}

TEST_F(FaultSignals, TheKernelIgnoresASignalWhenTheCopiesUnderWayHaveEnded) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    std::atomic<bool> copies = false;
    std::thread other([&] {
      const CopyUnderWay here;
      ASSERT_TRUE(takes_faults());
      copies = true;
      while (takes_faults()) sched_yield();
      stay_for_a_while();
      EXPECT_FALSE(kernel_ignores(SIGBUS));
      EXPECT_TRUE(copy_faults());
    });
    while (!copies) sched_yield();
    ASSERT_EQ(set(SIGBUS, with(SIG_IGN)), 0);
    EXPECT_TRUE(kernel_ignores(SIGBUS));
    other.join();
  });
}

TEST_F(FaultSignals, ACopyOfAHandlersLeavesTheOneThatItInterruptedUnderWay) {
  in_child([] {
    {
      const CopyUnderWay interrupted;
      {
        const CopyUnderWay of_handler;
      }
      EXPECT_FALSE(wait_for_copies());
    }
    EXPECT_TRUE(wait_for_copies());
  });
}

// It is ignored by a handler that has interrupted the copy.
TEST_F(FaultSignals, ASignalThatIsIgnoredInTheMiddleOfACopyDoesNotEndTheProcess) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    {
      const CopyUnderWay here;
      ASSERT_EQ(set(SIGSEGV, with(SIG_IGN)), 0);
      EXPECT_TRUE(copy_faults());
    }
    ::raise(SIGSEGV);
    EXPECT_FALSE(takes_faults());
    ASSERT_EQ(set(SIGSEGV, with(SIG_IGN)), 0);
    EXPECT_TRUE(kernel_ignores(SIGSEGV));
  });
}

TEST_F(FaultSignals, TheActionsAreGivenBackWhenTheCopiesUnderWayHaveEnded) {
  in_child([] {
    const struct sigaction action = with(count);
    ASSERT_EQ(::sigaction(SIGSEGV, &action, nullptr), 0);
    ASSERT_TRUE(catch_faults(::sigaction));
    std::atomic<bool> copies = false;
    std::thread other([&] {
      const CopyUnderWay here;
      copies = true;
      while (takes_faults()) sched_yield();
      stay_for_a_while();
      EXPECT_TRUE(copy_faults());
    });
    while (!copies) sched_yield();
    release_faults();
    struct sigaction found{};
    ASSERT_EQ(::sigaction(SIGSEGV, nullptr, &found), 0);
    EXPECT_EQ(found.sa_handler, count);
    EXPECT_FALSE(catch_faults(::sigaction));
    other.join();
  });
}

// For example because it left the copy by a jump.
TEST_F(FaultSignals, AThreadThatEndedInACopyIsNotWaitedFor) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    static std::optional<CopyUnderWay> left;
    std::thread([] { left.emplace(); }).join();
    ASSERT_EQ(set(SIGBUS, with(SIG_IGN)), 0);
    EXPECT_TRUE(kernel_ignores(SIGBUS)) << "that thread is gone";
  });
}

TEST_F(FaultSignals, WhereASignalIsBlockedNoCopyIsMade) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    ASSERT_TRUE(takes_faults());
    sigset_t bus;
    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &bus, nullptr), 0);
    forget_signal_mask();
    EXPECT_FALSE(takes_faults());
    ASSERT_EQ(::pthread_sigmask(SIG_UNBLOCK, &bus, nullptr), 0);
    // No hook has seen this call: the mask is read again after some reads.
    int reads = 0;
    while (!takes_faults()) reads++;
    EXPECT_LT(reads, 1000);
  });
}

TEST_F(FaultSignals, InTheHandlerOfASignalCopiesDoNotRaiseItAgain) {
  in_child([] {
    ASSERT_TRUE(catch_faults(::sigaction));
    ASSERT_TRUE(takes_faults());
    ASSERT_EQ(set(SIGSEGV, with([](int) { last = takes_faults() ? 1 : 2; })), 0);
    ::raise(SIGSEGV);
    EXPECT_EQ(last, 2);
    EXPECT_TRUE(takes_faults());
  });
}

}  // namespace
}  // namespace wherry::file::mapped
