// SPDX-License-Identifier: Apache-2.0
// scif_readfrom, writeto, vreadfrom, vwriteto, and the fences.
#include <fcntl.h>

#include <csignal>
#include <random>
#include <thread>

#include "tests/scif/pages.hpp"

namespace wherry::scif_test {
namespace {

class ScifRma : public Scif {};
class ScifFence : public Scif {};

constexpr off_t kNear = 0x100000;
constexpr off_t kFar = 0x200000;

/// Each side has registered 64 pages, in windows of 16: the acceptor at kNear, the connector at kFar.
struct Spaces {
  static constexpr std::size_t kBytes = 64 * kPage;
  explicit Spaces(int protection = kRw) {
    for (std::size_t at = 0; at < kBytes; at += kBytes / 4) {
      const auto step = static_cast<off_t>(at);
      EXPECT_EQ(scif_register(pair.acceptor, near.at(at), kBytes / 4, kNear + step, kRw, SCIF_MAP_FIXED), kNear + step);
      EXPECT_EQ(scif_register(pair.connector, far.at(at), kBytes / 4, kFar + step, protection, SCIF_MAP_FIXED),
                kFar + step);
    }
  }
  Pages near{64};
  Pages far{64};
  Pair pair;
  scif_epd_t epd = pair.acceptor;
};

TEST_F(ScifRma, MovesRangesOfAnyAlignmentAndLengthAcrossWindows) {
  const Spaces spaces;
  std::mt19937 random(1);
  std::vector<char> model_near(Spaces::kBytes);
  std::vector<char> model_far(Spaces::kBytes);
  std::vector<char> any(Spaces::kBytes);
  fill(spaces.near, Spaces::kBytes, 1);
  fill(spaces.far, Spaces::kBytes, 2);
  fill(model_near.data(), Spaces::kBytes, 1);
  fill(model_far.data(), Spaces::kBytes, 2);
  for (int i = 0; i < 400; ++i) {
    const std::size_t bytes = 1 + random() % (i % 4 == 0 ? Spaces::kBytes : 300);
    const std::size_t n = random() % (Spaces::kBytes - bytes + 1);
    const std::size_t f = random() % (Spaces::kBytes - bytes + 1);
    const auto near = kNear + static_cast<off_t>(n);
    const auto far = kFar + static_cast<off_t>(f);
    const int flags = static_cast<int>(random() % 16);
    fill(any.data(), bytes, i);
    switch (i / 4 % 4) {
      case 0:
        ASSERT_EQ(scif_writeto(spaces.epd, near, bytes, far, flags), 0);
        std::memcpy(&model_far[f], &model_near[n], bytes);
        break;
      case 1:
        ASSERT_EQ(scif_vwriteto(spaces.epd, any.data(), bytes, far, flags), 0);
        std::memcpy(&model_far[f], any.data(), bytes);
        break;
      case 2:
        ASSERT_EQ(scif_readfrom(spaces.epd, near, bytes, far, flags), 0);
        std::memcpy(&model_near[n], &model_far[f], bytes);
        break;
      default:
        ASSERT_EQ(scif_vreadfrom(spaces.epd, any.data(), bytes, far, flags), 0);
        ASSERT_EQ(std::memcmp(any.data(), &model_far[f], bytes), 0);
    }
    ASSERT_EQ(std::memcmp(spaces.near, model_near.data(), Spaces::kBytes), 0) << i;
    ASSERT_EQ(std::memcmp(spaces.far, model_far.data(), Spaces::kBytes), 0) << i;
  }
}

TEST_F(ScifRma, LenZeroAndOnlyUnknownFlagsAreEinval) {
  const Spaces spaces;
  char byte = 0;
  EXPECT_FAILS(EINVAL, scif_writeto(spaces.epd, kNear, 0, kFar, 0));
  EXPECT_FAILS(EINVAL, scif_readfrom(spaces.epd, kNear, 0, kFar, 0));
  EXPECT_FAILS(EINVAL, scif_vwriteto(spaces.epd, &byte, 0, kFar, 0));
  EXPECT_FAILS(EINVAL, scif_vreadfrom(spaces.epd, &byte, 0, kFar, 0));
  EXPECT_FAILS(EINVAL, scif_writeto(spaces.epd, kNear, 1, kFar, 0x100));
  EXPECT_FAILS(EINVAL, scif_vreadfrom(spaces.epd, &byte, 1, kFar, 0x100));
  EXPECT_EQ(scif_writeto(spaces.epd, kNear, 1, kFar, 0x100 | SCIF_RMA_SYNC), 0) << "a known one is set";
}

TEST_F(ScifRma, OutsideOfTheWindowsIsEnxio) {
  const Spaces spaces;
  const auto end = static_cast<off_t>(Spaces::kBytes);
  char bytes[2] = {};
  EXPECT_FAILS(ENXIO, scif_writeto(spaces.epd, kNear, 1, kFar + end, 0));
  EXPECT_FAILS(ENXIO, scif_writeto(spaces.epd, kNear, 2, kFar + end - 1, 0));
  EXPECT_FAILS(ENXIO, scif_writeto(spaces.epd, kNear + end - 1, 2, kFar, 0));
  EXPECT_FAILS(ENXIO, scif_readfrom(spaces.epd, kNear - 1, 2, kFar, 0));
  EXPECT_FAILS(ENXIO, scif_vreadfrom(spaces.epd, bytes, 2, kFar - 1, 0));
  EXPECT_FAILS(ENXIO, scif_vwriteto(spaces.epd, bytes, 2, -1, 0));
}

TEST_F(ScifRma, ABadAddressInAVFormIsEfault) {
  const Spaces spaces;
  Pages hole(2);
  ASSERT_EQ(::munmap(hole.at(kPage), kPage), 0);
  EXPECT_FAILS(EFAULT, scif_vwriteto(spaces.epd, hole, 2 * kPage, kFar, 0));
  EXPECT_FAILS(EFAULT, scif_vreadfrom(spaces.epd, hole, 2 * kPage, kFar, 0));
  EXPECT_FAILS(EFAULT, scif_vwriteto(spaces.epd, nullptr, 8, kFar, 0));
  EXPECT_FAILS(EFAULT, scif_vreadfrom(spaces.epd, nullptr, 8, kFar, 0));
  ASSERT_EQ(::mprotect(hole, kPage, PROT_READ), 0);
  EXPECT_FAILS(EFAULT, scif_vreadfrom(spaces.epd, hole, kPage, kFar, 0));
}

TEST_F(ScifRma, TheSourceNeedsReadAndTheDestinationWrite) {
  const Pair pair;
  Pages writable(1);
  Pages readable(1);
  ASSERT_EQ(::mprotect(readable, kPage, PROT_READ), 0);
  for (const scif_epd_t epd : {static_cast<int>(pair.acceptor), static_cast<int>(pair.connector)}) {
    ASSERT_EQ(scif_register(epd, writable, kPage, 0x10000, SCIF_PROT_WRITE, SCIF_MAP_FIXED), 0x10000);
    ASSERT_EQ(scif_register(epd, readable, kPage, 0x20000, SCIF_PROT_READ, SCIF_MAP_FIXED), 0x20000);
  }
  EXPECT_EQ(scif_writeto(pair.acceptor, 0x20000, 8, 0x10000, 0), 0);
  EXPECT_EQ(scif_readfrom(pair.acceptor, 0x10000, 8, 0x20000, 0), 0);
  EXPECT_FAILS(EPERM, scif_writeto(pair.acceptor, 0x10000, 8, 0x10000, 0));
  EXPECT_FAILS(EPERM, scif_writeto(pair.acceptor, 0x20000, 8, 0x20000, 0));
  EXPECT_FAILS(EPERM, scif_readfrom(pair.acceptor, 0x20000, 8, 0x20000, 0));
  EXPECT_FAILS(EPERM, scif_readfrom(pair.acceptor, 0x10000, 8, 0x10000, 0));
}

TEST_F(ScifRma, NeedsAConnectionAndGivesEconnresetAfterIt) {
  const Epd idle;
  char byte = 0;
  int mark = 0;
  constexpr int kSignal = SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE;
  const auto all_fail = [&](scif_epd_t epd, int error) {
    EXPECT_FAILS(error, scif_writeto(epd, kNear, 1, kFar, 0));
    EXPECT_FAILS(error, scif_readfrom(epd, kNear, 1, kFar, 0));
    EXPECT_FAILS(error, scif_vwriteto(epd, &byte, 1, kFar, 0));
    EXPECT_FAILS(error, scif_vreadfrom(epd, &byte, 1, kFar, 0));
    EXPECT_FAILS(error, scif_fence_mark(epd, SCIF_FENCE_INIT_SELF, &mark));
    EXPECT_FAILS(error, scif_fence_wait(epd, 0));
    EXPECT_FAILS(error, scif_fence_signal(epd, 0, 0, kFar, 1, kSignal));
    EXPECT_FAILS(error, scif_unregister(epd, kNear, kPage));
  };
  all_fail(idle, ENOTCONN);
  Spaces spaces;
  spaces.pair.connector.close();
  all_fail(spaces.epd, ECONNRESET);
}

/// What a program gets that goes on using `epd` until that fails.
int first_error(scif_epd_t epd) {
  constexpr int kSignal = SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE;
  while (scif_writeto(epd, kNear, 1, kFar, 0) == 0 && scif_fence_signal(epd, 0, 0, kFar, 1, kSignal) == 0) {
  }
  return errno;
}

TEST_F(ScifRma, ADescriptorClosedWithClose2IsSoonNoticed) {
  Spaces spaces;
  const int number = spaces.pair.acceptor;
  ASSERT_EQ(::close(spaces.pair.acceptor.release()), 0);
  EXPECT_EQ(first_error(number), EBADF);
}

TEST_F(ScifRma, ADescriptorThatBecameSomethingElseIsSoonNoticed) {
  Spaces spaces;
  const int number = spaces.pair.acceptor;
  const int other = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(other, number), number);
  static_cast<void>(spaces.pair.acceptor.release());
  EXPECT_EQ(first_error(number), ENOTTY);
  EXPECT_EQ(::close(number), 0);
  EXPECT_EQ(::close(other), 0);
}

TEST_F(ScifRma, NeedsNothingOfThePeersProgram) {
  const Listening listening;
  SharedValue<std::atomic<off_t>> offset;
  Child owner([&] {
    Pages pages(512);
    fill(pages, 512 * kPage, 4);
    Epd epd;
    scif_portID to = listening.port;
    if (scif_connect(epd, &to) <= 0) return false;
    *offset = scif_register(epd, pages, 512 * kPage, 0, kRw, 0);
    while (true) ::pause();
    return true;
  });
  const Epd epd(listening.accept());
  while (*offset == 0) std::this_thread::yield();
  ::kill(owner.pid(), SIGSTOP);
  std::vector<char> bytes(512 * kPage);
  EXPECT_EQ(scif_vreadfrom(epd, bytes.data(), bytes.size(), *offset, SCIF_RMA_SYNC), 0);
  EXPECT_TRUE(is_filled(bytes.data(), bytes.size(), 4));
  fill(bytes.data(), bytes.size(), 5);
  EXPECT_EQ(scif_vwriteto(epd, bytes.data(), bytes.size(), *offset, SCIF_RMA_SYNC), 0);
  std::vector<char> again(bytes.size());
  EXPECT_EQ(scif_vreadfrom(epd, again.data(), again.size(), *offset, 0), 0);
  EXPECT_EQ(again, bytes);
}

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
