// SPDX-License-Identifier: Apache-2.0
// The offsets of a window that was unregistered while the peer had it mapped stay taken until it is unmapped.
#include <memory>
#include <thread>

#include "tests/scif/pages.hpp"
#include "tests/scif/stopped_in_rma.hpp"

namespace wherry::scif_test {
namespace {

constexpr off_t kOffset = 0x20000;
constexpr std::size_t kBytes = 4 * kPage;

class ScifOffset : public Scif {
 protected:
  ScifOffset() { EXPECT_EQ(register_fixed(kOffset), kOffset); }

  off_t register_fixed(off_t offset) {
    return scif_register(pair_.connector, again_, kBytes, offset, kRw, SCIF_MAP_FIXED);
  }
  char* map() const { return static_cast<char*>(scif_mmap(nullptr, kBytes, kRw, 0, pair_.acceptor, kOffset)); }
  void unregister() const { EXPECT_EQ(scif_unregister(pair_.connector, kOffset, kBytes), 0); }

  /// A registration over the old window, which waits.
  std::unique_ptr<Waiting> late_registration() {
    auto waiting = std::make_unique<Waiting>([epd = int{pair_.connector}, memory = again_.at(0)] {
      return scif_register(epd, memory, kBytes, kOffset, kRw, SCIF_MAP_FIXED) == kOffset ? 0 : -1;
    });
    EXPECT_TRUE(waiting->waits());
    return waiting;
  }
  static void expect_success(Waiting& waiting) {
    waiting.join();
    EXPECT_EQ(waiting.result, 0) << std::strerror(waiting.error);
  }

  Pages again_{4};
  Pair pair_;
};

TEST_F(ScifOffset, IsFreeAtOnceIfNobodyMapsTheWindow) {
  unregister();
  EXPECT_EQ(register_fixed(kOffset), kOffset);
  char* const mapped = map();
  ASSERT_EQ(scif_munmap(mapped, kBytes), 0);
  unregister();
  EXPECT_EQ(register_fixed(kOffset), kOffset);
}

TEST_F(ScifOffset, OfAMappedWindowIsGivenAgainWhenItIsUnmapped) {
  char* const mapped = map();
  ASSERT_NE(mapped, SCIF_MMAP_FAILED);
  unregister();
  const auto waiting = late_registration();
  EXPECT_EQ(scif_munmap(mapped, kBytes), 0);
  expect_success(*waiting);
}

TEST_F(ScifOffset, StaysTakenUntilTheLastPageOfTheLastMappingIsUnmapped) {
  char* const first = map();
  char* const second = map();
  unregister();
  EXPECT_EQ(scif_munmap(first + kPage, kPage), 0) << "in the middle";
  EXPECT_EQ(scif_munmap(second, kBytes), 0);
  EXPECT_EQ(scif_munmap(first, kPage), 0);
  const auto waiting = late_registration();
  EXPECT_EQ(scif_munmap(first + 2 * kPage, 2 * kPage - 1), 0) << "pages are unmapped whole";
  expect_success(*waiting);
}

TEST_F(ScifOffset, IsFreeWhenAnotherMappingHasTakenThePlace) {
  char* const mapped = map();
  ASSERT_EQ(register_fixed(2 * kOffset), 2 * kOffset);
  unregister();
  const auto waiting = late_registration();
  ASSERT_EQ(scif_mmap(mapped, kBytes, kRw, SCIF_MAP_FIXED, pair_.acceptor, 2 * kOffset), static_cast<void*>(mapped));
  expect_success(*waiting);
  EXPECT_EQ(scif_munmap(mapped, kBytes), 0);
}

TEST_F(ScifOffset, ThatStaysMappedIsEnodevAfterTenSeconds) {
  char* const mapped = map();
  unregister();
  const std::int64_t before = steady_ns();
  EXPECT_FAILS(ENODEV, register_fixed(kOffset + kStep));
  EXPECT_GE(steady_ns() - before, 9'900'000'000);
  EXPECT_EQ(register_fixed(kOffset + static_cast<off_t>(kBytes)), kOffset + static_cast<off_t>(kBytes)) << "beside it";
  EXPECT_GT(scif_register(pair_.connector, again_, kBytes, kOffset, kRw, 0), 0) << "chosen, not asked for";
  EXPECT_EQ(scif_munmap(mapped, kBytes), 0);
}

TEST_F(ScifOffset, CloseInOneThreadWakesWhoWaitsForIt) {
  char* const mapped = map();
  unregister();
  const auto waiting = late_registration();
  EXPECT_EQ(scif_close(pair_.connector.release()), 0);
  waiting->join();
  EXPECT_EQ(waiting->error, ECONNRESET) << "and not that it waited for ten seconds: " << std::strerror(waiting->error);
  EXPECT_EQ(scif_munmap(mapped, kBytes), 0);
}

TEST_F(ScifOffset, AndTheWindowBehindItLiveOnThoughItsOwnerFreesTheMemory) {
  auto* const memory =
      static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  fill(memory, kBytes, 1);
  const off_t offset = 2 * kOffset;
  ASSERT_EQ(scif_register(pair_.connector, memory, kBytes, offset, kRw, SCIF_MAP_FIXED), offset);
  auto* const mapped = static_cast<char*>(scif_mmap(nullptr, kBytes, kRw, 0, pair_.acceptor, offset));
  ASSERT_EQ(scif_unregister(pair_.connector, offset, kBytes), 0);
  ASSERT_EQ(::munmap(memory, kBytes), 0);
  EXPECT_TRUE(is_filled(mapped, kBytes, 1));
  EXPECT_EQ(scif_munmap(mapped, kBytes), 0);
  EXPECT_EQ(register_fixed(offset), offset);
}

/// What the peer maps it takes with it, and a connection without a peer takes no windows.
TEST_F(ScifOffset, OfAWindowThatADeadPeerMappedIsEconnresetAtOnce) {
  const Listening listening;
  const SharedValue<std::atomic<bool>> mapped;
  Child mapper([&] {
    const Epd epd;
    scif_portID to = listening.port;
    if (scif_connect(epd, &to) <= 0 || receive_text(epd, 1) != "x") return false;
    *mapped = scif_mmap(nullptr, kBytes, kRw, 0, epd, kOffset) != SCIF_MMAP_FAILED;
    while (true) ::pause();
  });
  const Epd epd(listening.accept());
  const auto again = [&] { return scif_register(epd, again_, kBytes, kOffset, kRw, SCIF_MAP_FIXED); };
  ASSERT_EQ(again(), kOffset);
  ASSERT_EQ(send_text(epd, "x"), 1);
  while (!*mapped) ::usleep(100);
  ASSERT_EQ(scif_unregister(epd, kOffset, kBytes), 0);
  Waiting waiting([&] { return again() == kOffset ? 0 : -1; });
  EXPECT_TRUE(waiting.waits());
  mapper.kill();
  waiting.join();
  EXPECT_EQ(waiting.error, ECONNRESET) << std::strerror(waiting.error);
}

}  // namespace
}  // namespace wherry::scif_test
