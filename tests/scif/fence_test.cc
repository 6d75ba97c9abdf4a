// SPDX-License-Identifier: Apache-2.0
// scif_fence_mark, scif_fence_wait, scif_fence_signal.
#include <sys/mman.h>

#include <algorithm>
#include <thread>

#include "tests/scif/spaces.hpp"
#include "tests/scif/stopped_in_rma.hpp"

namespace wherry::scif_test {
namespace {

class ScifFence : public Scif {};

TEST_F(ScifFence, MarksOneInitiatorOnly) {
  const Spaces spaces;
  int mark = 0;
  EXPECT_FAILS(EINVAL, scif_fence_mark(spaces.epd, 0, &mark));
  EXPECT_FAILS(EINVAL, scif_fence_mark(spaces.epd, SCIF_FENCE_INIT_SELF | SCIF_FENCE_INIT_PEER, &mark));
  EXPECT_FAILS(EINVAL, scif_fence_mark(spaces.epd, 0x100, &mark));
  EXPECT_EQ(scif_fence_mark(spaces.epd, SCIF_FENCE_INIT_SELF, &mark), 0);
  EXPECT_GE(mark, 0);
  EXPECT_EQ(scif_fence_wait(spaces.epd, mark), 0);
  EXPECT_EQ(scif_fence_mark(spaces.epd, SCIF_FENCE_INIT_PEER, &mark), 0);
  EXPECT_LT(mark, 0) << "bit 31 is set";
  EXPECT_EQ(scif_fence_wait(spaces.epd, mark), 0);
}

TEST_F(ScifFence, AMarkThatWasNeverGivenIsEinval) {
  const Spaces spaces;
  EXPECT_FAILS(EINVAL, scif_fence_wait(spaces.epd, 12345));
}

TEST_F(ScifFence, WaitsForTheMarkedRma) {
  const Spaces spaces;
  fill(spaces.near, Spaces::kBytes, 3);
  ASSERT_EQ(scif_writeto(spaces.epd, kNear, Spaces::kBytes, kFar, 0), 0);
  int mine = 0;
  int theirs = 0;
  ASSERT_EQ(scif_fence_mark(spaces.epd, SCIF_FENCE_INIT_SELF, &mine), 0);
  ASSERT_EQ(scif_fence_mark(spaces.pair.connector, SCIF_FENCE_INIT_PEER, &theirs), 0);
  EXPECT_EQ(scif_fence_wait(spaces.epd, mine), 0);
  EXPECT_EQ(scif_fence_wait(spaces.pair.connector, theirs), 0);
  EXPECT_TRUE(is_filled(spaces.far, Spaces::kBytes, 3));
}

TEST_F(ScifFence, SignalChecksItsArguments) {
  const Spaces spaces;
  const auto signal = [&](off_t near, off_t far, int flags) {
    return scif_fence_signal(spaces.epd, near, 1, far, 2, flags);
  };
  constexpr int kBoth = SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE;
  EXPECT_FAILS(EINVAL, signal(kNear, kFar, SCIF_FENCE_INIT_SELF));
  EXPECT_FAILS(EINVAL, signal(kNear, kFar, kBoth));
  EXPECT_FAILS(EINVAL, signal(kNear, kFar, SCIF_FENCE_INIT_SELF | SCIF_FENCE_INIT_PEER | kBoth));
  EXPECT_FAILS(EINVAL, signal(kNear + 2, kFar, SCIF_FENCE_INIT_SELF | kBoth));
  EXPECT_FAILS(EINVAL, signal(kNear, kFar + 2, SCIF_FENCE_INIT_SELF | kBoth));
  EXPECT_FAILS(ENXIO, signal(kNear, 0x900000, SCIF_FENCE_INIT_SELF | kBoth));
  EXPECT_FAILS(ENXIO, signal(kNear, kFar + 16 * kStep - 4, SCIF_FENCE_INIT_SELF | kBoth));
}

TEST_F(ScifFence, SignalWritesEightBytesOnTheSidesAskedFor) {
  const Spaces spaces;
  std::uint64_t near = 0;
  std::uint64_t far = 0;
  const auto look = [&] {
    std::memcpy(&near, spaces.near.at(4), 8);
    std::memcpy(&far, spaces.far.at(12), 8);
  };
  constexpr std::uint64_t kOne = 0x1122334455667788;
  constexpr std::uint64_t kTwo = 0x99aabbccddeeff00;
  ASSERT_EQ(scif_fence_signal(spaces.epd, kNear + 4, kOne, 1, 0, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL), 0);
  look();
  EXPECT_EQ(near, kOne);
  EXPECT_EQ(far, 0U);
  ASSERT_EQ(scif_fence_signal(spaces.epd, 1, 0, kFar + 12, kTwo, SCIF_FENCE_INIT_PEER | SCIF_SIGNAL_REMOTE), 0);
  look();
  EXPECT_EQ(far, kTwo);
  ASSERT_EQ(scif_fence_signal(spaces.epd, kNear + 4, kTwo, kFar + 12, kOne,
                              SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE),
            0);
  look();
  EXPECT_EQ(near, kTwo);
  EXPECT_EQ(far, kOne);
}

TEST_F(ScifFence, ASignalNeedsWindowsThatMayBeWritten) {
  const Pair pair;
  Pages writable(1);
  Pages readable(1);
  ASSERT_EQ(::mprotect(readable, kPage, PROT_READ), 0);
  for (const scif_epd_t epd : {static_cast<int>(pair.acceptor), static_cast<int>(pair.connector)}) {
    ASSERT_EQ(scif_register(epd, writable, kPage, 0x10000, kRw, SCIF_MAP_FIXED), 0x10000);
    ASSERT_EQ(scif_register(epd, readable, kPage, 0x20000, SCIF_PROT_READ, SCIF_MAP_FIXED), 0x20000);
  }
  const auto signal = [&](off_t near, off_t far, int sides) {
    return scif_fence_signal(pair.acceptor, near, 7, far, 7, SCIF_FENCE_INIT_SELF | sides);
  };
  EXPECT_FAILS(EPERM, signal(0, 0x20000, SCIF_SIGNAL_REMOTE));
  EXPECT_FAILS(EPERM, signal(0x20000, 0, SCIF_SIGNAL_LOCAL));
  EXPECT_FAILS(EPERM, signal(0x10000, 0x20000, SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE));
  EXPECT_EQ(writable[0], 0) << "neither word is written if one cannot be";
}

TEST_F(ScifFence, TheLocalWordIsWrittenBeforeTheRemoteOne) {
  const Spaces spaces;
  constexpr std::uint64_t kSignals = 50'000;
  const auto word = [](const char* memory) {
    return reinterpret_cast<const std::atomic<std::uint64_t>*>(memory)->load(std::memory_order_acquire);
  };
  std::uint64_t late = 0;
  std::thread observer([&] {
    std::uint64_t far = 0;
    while (far != kSignals) {
      far = word(spaces.far);
      if (word(spaces.near) < far) ++late;
    }
  });
  for (std::uint64_t i = 1; i <= kSignals; ++i) {
    ASSERT_EQ(
        scif_fence_signal(spaces.epd, kNear, i, kFar, i, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE),
        0);
  }
  observer.join();
  EXPECT_EQ(late, 0U);
}

int wait_for_the_peers_rma(scif_epd_t epd) {
  int mark = 0;
  return scif_fence_mark(epd, SCIF_FENCE_INIT_PEER, &mark) == 0 ? scif_fence_wait(epd, mark) : -1;
}

constexpr std::int64_t kAtOnce = 100'000'000;

/// How long a call went on that waited for the RMA of a peer once the kernel told that this was killed; at best, as
/// others may have the machine at any moment. A product that never hears of it at once is ended by the watchdog.
template <class Call>
std::int64_t best_time_after_a_kill(Call call) {
  std::int64_t best = INT64_MAX;
  while (best >= kAtOnce && !::testing::Test::HasFailure()) {
    BusyPeer peer;
    const int epd = peer.epd();
    const auto waiting = peer.stop_so_that_this_waits([&] { return call(epd, peer.window()); });
    peer.kill();
    await_hang_up(epd);
    const std::int64_t told_at = steady_ns();
    waiting->join();
    EXPECT_EQ(waiting->result, -1);
    EXPECT_EQ(waiting->error, ECONNRESET) << std::strerror(waiting->error);
    best = std::min(best, waiting->ended_at - told_at);
  }
  return best;
}

TEST_F(ScifFence, AWaitForAPeerThatIsKilledInMidRmaIsEconnreset) {
  EXPECT_LT(best_time_after_a_kill([](scif_epd_t epd, const char*) { return wait_for_the_peers_rma(epd); }), kAtOnce);
}

TEST_F(ScifFence, ASignalBehindAPeerThatIsKilledInMidRmaIsEconnresetAndWritesNothing) {
  std::uint64_t word = 0x1122334455667788;
  EXPECT_LT(best_time_after_a_kill([&word](scif_epd_t epd, const char* window) {
              ++word;
              const int result = scif_fence_signal(epd, kNear, word, 0, 0, SCIF_FENCE_INIT_PEER | SCIF_SIGNAL_LOCAL);
              const int error = errno;
              EXPECT_EQ(std::memcmp(window, &word, sizeof word) == 0, result == 0);
              errno = error;
              return result;
            }),
            kAtOnce);
}

TEST_F(ScifFence, CloseInOneThreadWakesAWaitInAnother) {
  BusyPeer peer;
  const int epd = peer.epd();
  const auto waiting = peer.stop_so_that_this_waits([&] { return wait_for_the_peers_rma(epd); });
  peer.epd().close();
  waiting->join();
  EXPECT_EQ(waiting->result, -1);
  EXPECT_EQ(waiting->error, ECONNRESET) << "and not that it waited for ten seconds: " << std::strerror(waiting->error);
}

TEST_F(ScifFence, AWaitTimesOutAfterTenSecondsAndGoesWellOnceTheRmaIsComplete) {
  BusyPeer peer;
  const int epd = peer.epd();
  const std::int64_t before = steady_ns();
  const auto waiting = peer.stop_so_that_this_waits([&] { return wait_for_the_peers_rma(epd); });
  waiting->join();
  EXPECT_EQ(waiting->result, -1);
  EXPECT_EQ(waiting->error, ETIMEDOUT) << std::strerror(waiting->error);
  EXPECT_GE(waiting->ended_at - before, 9'900'000'000);
  peer.resume();
  EXPECT_EQ(wait_for_the_peers_rma(epd), 0);
}

TEST_F(ScifFence, WhoSeesTheSignalledWordSeesAllBytesOfEarlierRma) {
  const Listening listening;
  constexpr std::size_t kBytes = 64 * kPage;
  constexpr int kRounds = 300;
  Child writer([&] {
    Epd epd;
    scif_portID to = listening.port;
    if (scif_connect(epd, &to) <= 0) return false;
    off_t there = 0;
    if (scif_recv(epd, &there, sizeof there, SCIF_RECV_BLOCK) != sizeof there) return false;
    std::vector<char> bytes(kBytes);
    for (int i = 1; i <= kRounds; ++i) {
      fill(bytes.data(), kBytes, i);
      const auto value = static_cast<std::uint64_t>(i);
      if (scif_vwriteto(epd, bytes.data(), kBytes, there + kStep, 0) != 0) return false;
      if (scif_fence_signal(epd, 0, 0, there, value, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE) != 0) return false;
      char go = 0;
      if (scif_recv(epd, &go, 1, SCIF_RECV_BLOCK) != 1) return false;
    }
    return true;
  });
  const Epd epd(listening.accept());
  Pages pages(65);
  off_t offset = scif_register(epd, pages, 65 * kPage, 0, kRw, 0);
  ASSERT_EQ(scif_send(epd, &offset, sizeof offset, SCIF_SEND_BLOCK), static_cast<int>(sizeof offset));
  const auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(static_cast<char*>(pages));
  for (int i = 1; i <= kRounds; ++i) {
    while (word.load(std::memory_order_acquire) != static_cast<std::uint64_t>(i)) std::this_thread::yield();
    ASSERT_TRUE(is_filled(pages.at(kPage), kBytes, i)) << i;
    ASSERT_EQ(send_text(epd, "x"), 1);
  }
  EXPECT_EQ(writer.wait(), 0);
}

}  // namespace
}  // namespace wherry::scif_test
