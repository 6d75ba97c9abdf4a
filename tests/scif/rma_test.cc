// SPDX-License-Identifier: Apache-2.0
// scif_readfrom, writeto, vreadfrom, vwriteto.
#include <fcntl.h>

#include <csignal>
#include <random>
#include <thread>

#include "tests/scif/spaces.hpp"

namespace wherry::scif_test {
namespace {

class ScifRma : public Scif {};

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

/// Not told to a sanitizer: it is looked at while another thread writes it.
#if defined(__clang__) || defined(__GNUC__)
__attribute__((no_sanitize("thread")))
#endif
char glance(const char* at) {
  return *static_cast<const volatile char*>(at);
}

TEST_F(ScifRma, CloseWaitsForTheCallsOfOtherThreads) {
  constexpr std::size_t kBytes = std::size_t{128} << 20;
  const std::vector<char> source(kBytes, 'x');
  for (int round = 0; round < 5; ++round) {
    Pages target(kBytes / kPage);
    Pair pair;
    ASSERT_EQ(scif_register(pair.connector, target, kBytes, kFar, kRw, SCIF_MAP_FIXED), kFar);
    std::thread writer(
        [&] { EXPECT_EQ(scif_vwriteto(pair.acceptor, const_cast<char*>(source.data()), kBytes, kFar, 0), 0); });
    while (glance(target) != 'x') std::this_thread::yield();
    EXPECT_EQ(scif_close(pair.acceptor), 0);
    EXPECT_EQ(glance(target.at(kBytes - 1)), 'x');
    writer.join();
    static_cast<void>(pair.acceptor.release());
  }
}

TEST_F(ScifRma, OrderedMakesTheLastCacheLineVisibleAfterAllTheRest) {
  constexpr std::size_t kLine = 64;
  constexpr int kRounds = 2000;
  const auto bytes_of = [](int round) { return kLine + 1 + static_cast<std::size_t>(round) * 7919 % (63 * kPage); };
  const Listening listening;
  Child writer([&] {
    const Epd epd;
    scif_portID to = listening.port;
    if (scif_connect(epd, &to) <= 0) return false;
    std::vector<char> source(64 * kPage);
    for (int i = 1; i <= kRounds; ++i) {
      const std::size_t bytes = bytes_of(i);
      fill(source.data(), bytes, i);
      if (receive_text(epd, 1) != "g") return false;
      if (scif_vwriteto(epd, source.data(), bytes, kNear + i % 64, SCIF_RMA_ORDERED) != 0) return false;
    }
    return true;
  });
  const Epd epd(listening.accept());
  Pages pages(64);
  ASSERT_EQ(scif_register(epd, pages, 64 * kPage, kNear, kRw, SCIF_MAP_FIXED), kNear);
  for (int i = 1; i <= kRounds; ++i) {
    const std::size_t bytes = bytes_of(i);
    const char* const start = pages.at(i % 64);
    const auto& last = *reinterpret_cast<const std::atomic<char>*>(start + bytes - 1);
    const std::size_t rest = bytes - (static_cast<std::size_t>(i) % 64 + bytes - 1) % kLine - 1;
    std::memset(pages, static_cast<unsigned char>(byte_at(bytes - 1, i) + 1), 64 * kPage);
    ASSERT_EQ(send_text(epd, "g"), 1);
    while (last.load(std::memory_order_acquire) != byte_at(bytes - 1, i)) std::this_thread::yield();
    ASSERT_TRUE(is_filled(start, rest, i)) << i;
  }
  EXPECT_EQ(writer.wait(), 0);
}

TEST_F(ScifRma, NeedsNothingOfThePeersProgram) {
  const Listening listening;
  Owner owner(listening, 512, 4);
  const Epd epd(listening.accept());
  const off_t offset = owner.offset();
  ::kill(owner.child().pid(), SIGSTOP);
  std::vector<char> bytes(512 * kPage);
  EXPECT_EQ(scif_vreadfrom(epd, bytes.data(), bytes.size(), offset, SCIF_RMA_SYNC), 0);
  EXPECT_TRUE(is_filled(bytes.data(), bytes.size(), 4));
  fill(bytes.data(), bytes.size(), 5);
  EXPECT_EQ(scif_vwriteto(epd, bytes.data(), bytes.size(), offset, SCIF_RMA_SYNC), 0);
  std::vector<char> again(bytes.size());
  EXPECT_EQ(scif_vreadfrom(epd, again.data(), again.size(), offset, 0), 0);
  EXPECT_EQ(again, bytes);
}

}  // namespace
}  // namespace wherry::scif_test
