// SPDX-License-Identifier: Apache-2.0
// A program can write anything to the page that it shares with the mount.
#include "file/mount/delegation_pages.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/unique_fd.hpp"

namespace wherry::file::mount {
namespace {

using namespace std::chrono_literals;
using layout::DelegationPage;
using layout::DelegationPageOffer;
using layout::kDelegationPageBytes;
using Clock = DelegationPages::Clock;

pid_t this_thread() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

std::uint64_t in_ns(Clock::time_point time) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
}

/// The program's side.
class ProgramPage {
 public:
  explicit ProgramPage(std::size_t bytes = kDelegationPageBytes, int seals = F_SEAL_SHRINK)
      : memory_(::memfd_create("delegation", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (::ftruncate(memory_.get(), static_cast<off_t>(bytes)) != 0) return;
    ::fcntl(memory_.get(), F_ADD_SEALS, seals);
    page_ = static_cast<DelegationPage*>(
        ::mmap(nullptr, kDelegationPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0));
    page_->version = layout::kDelegationPageVersion;
    page_->magic = layout::kDelegationPageMagic;
  }
  ProgramPage(const ProgramPage&) = delete;
  ProgramPage& operator=(const ProgramPage&) = delete;
  ~ProgramPage() { ::munmap(page_, kDelegationPageBytes); }

  [[nodiscard]] DelegationPageOffer offer() const {
    return {.version = layout::kDelegationPageVersion,
            .descriptor = memory_.get(),
            .random = {},
            .now = in_ns(Clock::now())};
  }
  [[nodiscard]] DelegationPage& page() const { return *page_; }
  [[nodiscard]] std::uint64_t until() const { return page_->until.load(); }
  [[nodiscard]] std::uint32_t recalls() const { return page_->recalls.load(); }

 private:
  UniqueFd memory_;
  DelegationPage* page_ = nullptr;
};

TEST(DelegationPages, TellEachProgramUntilWhenTheFileIsDelegated) {
  const ProgramPage one;
  const ProgramPage other;
  DelegationPages pages;
  EXPECT_FALSE(pages.recalls().has_value());
  ASSERT_EQ(pages.attach(this_thread(), one.offer()), 0);
  ASSERT_EQ(pages.attach(this_thread(), other.offer()), 0);
  EXPECT_EQ(one.until(), 0U);
  const auto until = Clock::now() + 100ms;
  pages.grant(*pages.recalls(), until);
  EXPECT_LE(one.until(), in_ns(until));
  EXPECT_GT(one.until(), in_ns(until - 50ms));
  EXPECT_GT(other.until(), in_ns(until - 50ms));
  pages.recall();
  EXPECT_EQ(one.until(), 0U);
  EXPECT_EQ(one.recalls(), 1U);
  EXPECT_EQ(other.recalls(), 1U);
}

TEST(DelegationPages, IgnoreADelegationThatWasRecalledBeforeItsAnswerCame) {
  const ProgramPage program;
  DelegationPages pages;
  ASSERT_EQ(pages.attach(this_thread(), program.offer()), 0);
  const auto before = *pages.recalls();
  pages.recall();
  pages.grant(before, Clock::now() + 100ms);
  EXPECT_EQ(program.until(), 0U);
}

TEST(DelegationPages, UseTheProgramsClock) {
  const ProgramPage program;
  DelegationPageOffer offer = program.offer();
  constexpr std::uint64_t kAhead = 1'000'000'000'000;
  offer.now += kAhead;
  DelegationPages pages;
  ASSERT_EQ(pages.attach(this_thread(), offer), 0);
  const auto until = Clock::now() + 100ms;
  pages.grant(0, until);
  EXPECT_LE(program.until(), in_ns(until) + kAhead);
  EXPECT_GT(program.until(), in_ns(until - 50ms) + kAhead);
}

TEST(DelegationPages, EndTheDelegationWhenTheFileIsClosed) {
  const ProgramPage program;
  {
    DelegationPages pages;
    ASSERT_EQ(pages.attach(this_thread(), program.offer()), 0);
    pages.grant(0, Clock::now() + 1h);
  }
  EXPECT_EQ(program.until(), 0U);
  EXPECT_EQ(program.recalls(), 1U);
}

TEST(DelegationPages, RefuseMemoryThatIsNoPage) {
  DelegationPages pages;
  const ProgramPage shrinks(kDelegationPageBytes, 0);
  const ProgramPage longer(2 * kDelegationPageBytes);
  EXPECT_EQ(pages.attach(this_thread(), shrinks.offer()), EINVAL);
  EXPECT_EQ(pages.attach(this_thread(), longer.offer()), EINVAL);
  const ProgramPage program;
  DelegationPageOffer offer = program.offer();
  offer.descriptor = STDERR_FILENO;
  EXPECT_EQ(pages.attach(this_thread(), offer), EPERM);
  offer.descriptor = -1;
  EXPECT_EQ(pages.attach(this_thread(), offer), EPERM);
  offer = program.offer();
  offer.version++;
  EXPECT_EQ(pages.attach(this_thread(), offer), EINVAL);
  offer = program.offer();
  offer.now = ~std::uint64_t{0};
  EXPECT_EQ(pages.attach(this_thread(), offer), EINVAL);
  offer = program.offer();
  offer.random[3] ^= 1;
  EXPECT_EQ(pages.attach(this_thread(), offer), EINVAL);
  program.page().magic = 0;
  EXPECT_EQ(pages.attach(this_thread(), program.offer()), EINVAL);
  EXPECT_FALSE(pages.recalls().has_value());
}

TEST(DelegationPages, TakeANewPageOfAProcessInPlaceOfItsOldestOne) {
  const ProgramPage oldest;
  const ProgramPage newest;
  DelegationPages pages;
  ASSERT_EQ(pages.attach(this_thread(), oldest.offer()), 0);
  for (std::size_t i = 0; i < DelegationPages::kMost; ++i) ASSERT_EQ(pages.attach(this_thread(), newest.offer()), 0);
  EXPECT_EQ(oldest.recalls(), 1U);
  pages.grant(0, Clock::now() + 1h);
  EXPECT_EQ(oldest.until(), 0U);
  EXPECT_NE(newest.until(), 0U);
}

}  // namespace
}  // namespace wherry::file::mount
