// SPDX-License-Identifier: Apache-2.0
//
// A client dies after each single instruction of what it does: it is traced, and what it would leave behind is looked
// at between any two of them, before the card has repaired it and after.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <functional>

#include "arch/barrier.hpp"
#include "file/cache.hpp"
#include "tests/common/file_cache.hpp"
#include "tests/common/sanitizer.hpp"

namespace wherry::file {
namespace {

using std::byte;

// Between looks. A sanitizer's instructions are many times as many, and not the cache's.
constexpr int kStride = WHERRY_THREAD_SANITIZER != 0 || WHERRY_ADDRESS_SANITIZER != 0 ? 499 : 1;

// If a step takes longer than a clock tick, the retry loop of the vDSO's clock never ends.
constexpr int kMostSteps = 30'000;

class FileCacheKilled : public ::testing::Test {
 protected:
  /// Runs `what` in a process that stops after each instruction. `prepare` is run there first, and untraced.
  void at_each_instruction(const std::function<void(Cache&)>& prepare, const std::function<void(Cache&)>& what) {
    const pid_t child = ::fork();
    if (child == 0) run_traced(prepare, what);
    ASSERT_GT(child, 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSTOPPED(status)) << "ptrace is refused here";
    number_ = 0;
    for (std::uint64_t number = 1; number <= 8; ++number) {
      if (segment_->client(number).pid == static_cast<std::uint64_t>(child)) number_ = number;
    }
    ASSERT_NE(number_, 0U);
    int steps = 0;
    for (; !HasFailure() && steps < kMostSteps; ++steps) {
      if (steps % kStride == 0) look(steps);
      if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 || ::waitpid(child, &status, 0) != child) break;
      if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) break;  // it has done it
    }
    EXPECT_TRUE(steps == kMostSteps || (WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP));
    EXPECT_GT(steps, 50);
    look(steps);
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    repair(*segment_, number_, false);
    std::printf("%d instructions\n", steps);
  }

  TestSegment segment_;
  TestFile file_{4 * kBlockBytes};
  TestCache cache_{segment_};
  File opened_ = open_usable(*cache_, file_);

 private:
  [[noreturn]] void run_traced(const std::function<void(Cache&)>& prepare, const std::function<void(Cache&)>& what) {
    static Cache own;
    if (own.attach(segment_.path())) ::_exit(1);
    prepare(own);
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
    ::raise(SIGSTOP);
    what(own);
    ::raise(SIGSTOP);
    ::_exit(0);
  }

  /// As if it were dead now. Puts back everything.
  void look(int step) {
    const std::vector<byte> before(segment_.tables().begin(), segment_.tables().end());
    hits_are_right(step);
    repair(*segment_, number_, false);
    EXPECT_EQ(broken_invariant(*segment_), "") << "after " << step << " instructions";
    hits_are_right(step);
    const File opened = open_usable(*cache_, file_);
    for (std::uint64_t block = 0; block < 2; ++block) {
      EXPECT_TRUE(fill_block(*cache_, opened, file_.descriptor(), block) || hits(opened, block))
          << "block " << block << " after " << step << " instructions";
    }
    opened_ = opened;
    hits_are_right(step);
    std::ranges::copy(before, segment_.tables().begin());
    opened_ = cache_->open(file_.key());
  }
  bool hits(const File& opened, std::uint64_t block) {
    byte got;
    return cache_->read(opened, block * kBlockBytes, {&got, 1});
  }
  /// Only the dead process changed anything: a hit is what the kernel has.
  void hits_are_right(int step) {
    for (std::uint64_t block = 0; block < 2; ++block) {
      std::vector<byte> got(kBlockBytes);
      std::vector<byte> now(kBlockBytes);
      if (!cache_->read(opened_, block * kBlockBytes, got)) continue;
      ASSERT_EQ(::pread(file_.descriptor(), now.data(), now.size(), static_cast<off_t>(block * kBlockBytes)),
                static_cast<ssize_t>(now.size()));
      EXPECT_EQ(got, now) << "block " << block << " after " << step << " instructions";
    }
  }

  std::uint64_t number_ = 0;
};

TEST_F(FileCacheKilled, InAChange) {
  ASSERT_TRUE(fill_block(*cache_, opened_, file_.descriptor(), 0));
  ASSERT_TRUE(fill_block(*cache_, opened_, file_.descriptor(), 1));
  at_each_instruction([&](Cache& own) { const Change change(own, Key(1, 1), 0, 1); },
                      [&](Cache& own) {
                        const Change change(own, file_.key(), kBlockBytes - 4, 8);
                        file_.write(kBlockBytes - 4, 8, 0x31);
                      });
}

TEST_F(FileCacheKilled, InAChangeOfAnyPart) {
  ASSERT_TRUE(fill_block(*cache_, opened_, file_.descriptor(), 0));
  at_each_instruction([&](Cache& own) { const Change change(own, Key(1, 1)); },
                      [&](Cache& own) {
                        const Change change(own, file_.key());
                        file_.write(3, 8, 0x32);
                      });
}

TEST_F(FileCacheKilled, InAFill) {
  at_each_instruction([&](Cache& own) { ASSERT_TRUE(fill_block(own, open_usable(own, file_), file_.descriptor(), 1)); },
                      [&](Cache& own) { fill_block(own, own.open(file_.key()), file_.descriptor(), 0); });
}

TEST_F(FileCacheKilled, WhileItOpensAndValidates) {
  TestFile other(4 * kBlockBytes, 2);
  at_each_instruction([&](Cache& own) { (void)open_usable(own, file_); },
                      [&](Cache& own) {
                        (void)own.validate(own.open(other.key()), other.stamp());
                        (void)own.validate(own.open(file_.key()), Stamp(file_.status(), 0));
                        (void)own.validate(own.open(file_.key()), other.stamp());
                      });
}

TEST_F(FileCacheKilled, WhileItMarks) {
  ASSERT_TRUE(fill_block(*cache_, opened_, file_.descriptor(), 0));
  at_each_instruction([&](Cache& own) { own.unmark(own.mark(Key(1, 1))); },
                      [&](Cache& own) {
                        const Mark mark = own.mark(file_.key());
                        file_.write(0, 8, 0x33);
                        own.unmark(mark);
                      });
}

}  // namespace
}  // namespace wherry::file
