// SPDX-License-Identifier: Apache-2.0
// scif_register, scif_unregister, scif_mmap, scif_munmap.
#include <sys/mman.h>

#include <thread>

#include "tests/common/pages_with_a_hole.hpp"
#include "tests/scif/pages.hpp"

namespace wherry::scif_test {
namespace {

class ScifRegister : public Scif {};
class ScifUnregister : public Scif {};
class ScifMmap : public Scif {};

constexpr off_t kHigh = off_t{1} << 62;

TEST_F(ScifRegister, NeedsAConnectedEndpoint) {
  Pages pages(1);
  const Epd epd;
  EXPECT_FAILS(ENOTCONN, scif_register(epd, pages, kPage, 0, kRw, 0));
  Pair pair;
  pair.acceptor.close();
  EXPECT_FAILS(ECONNRESET, scif_register(pair.connector, pages, kPage, 0, kRw, 0));
}

TEST_F(ScifRegister, ChecksItsArguments) {
  const Pair pair;
  Pages pages(2);
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages.at(1), kPage, 0, kRw, 0));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, kPage - 1, 0, kRw, 0));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, 0, 0, kRw, 0));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, kPage, 0, 4, 0));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, kPage, 0, 0, 0));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, kPage, 0x10000, 0, SCIF_MAP_FIXED));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, kPage, 0, kRw, 1));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, kPage, 0, kRw, SCIF_MAP_KERNEL));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, kPage, 1, kRw, SCIF_MAP_FIXED));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, kPage, -4096, kRw, SCIF_MAP_FIXED));
  EXPECT_FAILS(EINVAL, scif_register(pair.connector, pages, kPage, 0x7ffffffffffff000, kRw, SCIF_MAP_FIXED));
}

TEST_F(ScifRegister, ChoosesAnOffsetThatIsNeverZero) {
  const Pair pair;
  Pages pages(4);
  off_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const off_t hint = i % 2 == 0 ? 0 : last + i - 50;  // of any kind: it is ignored
    const off_t offset = scif_register(pair.connector, pages, 4 * kPage, hint, kRw, 0);
    ASSERT_GT(offset, 0);
    EXPECT_NE(offset, last);
    last = offset;
  }
}

TEST_F(ScifRegister, FixedTakesEveryPageMultipleAndRefusesOverlaps) {
  const Pair pair;
  Pages pages(4);
  const auto address = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(pages.at(0)));
  for (const off_t offset : {off_t{0}, off_t{0x80000}, address}) {
    EXPECT_EQ(scif_register(pair.connector, pages, 2 * kPage, offset, kRw, SCIF_MAP_FIXED), offset);
    EXPECT_FAILS(EADDRINUSE, scif_register(pair.connector, pages, kPage, offset + kStep, kRw, SCIF_MAP_FIXED));
  }
  EXPECT_FAILS(EADDRINUSE, scif_register(pair.connector, pages, kPage, kHigh, kRw, SCIF_MAP_FIXED));
}

TEST_F(ScifRegister, MemoryThatIsNotThereIsEfault) {
  const Pair pair;
  const PagesWithAHole pages;
  EXPECT_FAILS(EFAULT, scif_register(pair.connector, pages.bytes().data(), 3 * kPage, 0, kRw, 0));
  EXPECT_FAILS(EFAULT, scif_register(pair.connector, nullptr, kPage, 0, kRw, 0));
}

/// In a process of its own: registered memory is shared with the children forked afterwards, and this test's heap and
/// stack must not be.
bool registers_whatever_memory_there_is() {
  Pair pair;
  alignas(4096) static char fixed[8192] = "static";
  alignas(4096) char stack[8192] = "stack";
  void* heap = nullptr;
  EXPECT_EQ(::posix_memalign(&heap, 4096, 8192), 0);
  std::strcpy(static_cast<char*>(heap), "heap");
  Pages anonymous(2);
  std::strcpy(anonymous, "mapped");
  for (char* memory : {fixed, stack, static_cast<char*>(heap), static_cast<char*>(anonymous)}) {
    const std::string text = memory;
    const off_t offset = scif_register(pair.connector, memory, 8192, 0, kRw, 0);
    EXPECT_GT(offset, 0) << text;
    char seen[16] = {};
    EXPECT_EQ(scif_vreadfrom(pair.acceptor, seen, sizeof seen, offset, 0), 0);
    EXPECT_EQ(text, seen);
    EXPECT_EQ(scif_vwriteto(pair.acceptor, const_cast<char*>("seen"), 5, offset, 0), 0);
    EXPECT_STREQ(memory, "seen");
  }
  std::free(heap);
  return !::testing::Test::HasFailure();
}

TEST_F(ScifRegister, TakesWhateverMemoryTheCallerHas) {
  Child child([] { return registers_whatever_memory_there_is(); });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(ScifRegister, TheSamePageMayBeInManyWindowsOfManyEndpoints) {
  const Pair first;
  const Pair second;
  Pages pages(3);
  const off_t a = scif_register(first.connector, pages, 2 * kPage, 0, kRw, 0);
  const off_t b = scif_register(first.connector, pages.at(kPage), 2 * kPage, 0, kRw, 0);
  const off_t c = scif_register(second.connector, pages, 3 * kPage, 0, kRw, 0);
  ASSERT_EQ(scif_vwriteto(first.acceptor, const_cast<char*>("one"), 4, a + kStep, 0), 0);
  char seen[8] = {};
  EXPECT_EQ(scif_vreadfrom(first.acceptor, seen, 4, b, 0), 0);
  EXPECT_STREQ(seen, "one");
  EXPECT_EQ(scif_vreadfrom(second.acceptor, seen, 4, c + kStep, 0), 0);
  EXPECT_STREQ(seen, "one");
  EXPECT_STREQ(pages.at(kPage), "one");
}

TEST_F(ScifRegister, FreeBeforeUnregisterLeavesTheWindowAlive) {
  const Pair pair;
  auto* memory =
      static_cast<char*>(::mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  fill(memory, 4 * kPage, 3);
  const off_t offset = scif_register(pair.connector, memory, 4 * kPage, 0, kRw, 0);
  ASSERT_EQ(::munmap(memory, 4 * kPage), 0);
  std::vector<char> seen(4 * kPage);
  EXPECT_EQ(scif_vreadfrom(pair.acceptor, seen.data(), seen.size(), offset, 0), 0);
  EXPECT_TRUE(is_filled(seen.data(), seen.size(), 3));
  EXPECT_EQ(scif_unregister(pair.connector, offset, 4 * kPage), 0);
}

TEST_F(ScifRegister, AReadOnlyWindowOverWritableMemoryIsWritable) {
  const Pair pair;
  Pages pages(1);
  const off_t offset = scif_register(pair.connector, pages, kPage, 0, SCIF_PROT_READ, 0);
  EXPECT_EQ(scif_vwriteto(pair.acceptor, const_cast<char*>("x"), 1, offset, 0), 0);
}

TEST_F(ScifRegister, AWriteOnlyWindowIsNotReadable) {
  const Pair pair;
  Pages pages(1);
  const off_t offset = scif_register(pair.connector, pages, kPage, 0, SCIF_PROT_WRITE, 0);
  char byte = 0;
  EXPECT_FAILS(EPERM, scif_vreadfrom(pair.acceptor, &byte, 1, offset, 0));
  EXPECT_EQ(scif_vwriteto(pair.acceptor, &byte, 1, offset, 0), 0);
}

TEST_F(ScifRegister, ReadOnlyMemoryIsNotWritable) {
  const Pair pair;
  Pages pages(1);
  pages[0] = 'r';
  ASSERT_EQ(::mprotect(pages, kPage, PROT_READ), 0);
  EXPECT_FAILS(EFAULT, scif_register(pair.connector, pages, kPage, 0, kRw, 0));
  const off_t offset = scif_register(pair.connector, pages, kPage, 0, SCIF_PROT_READ, 0);
  char byte = 0;
  EXPECT_EQ(scif_vreadfrom(pair.acceptor, &byte, 1, offset, 0), 0);
  EXPECT_EQ(byte, 'r');
  EXPECT_FAILS(EPERM, scif_vwriteto(pair.acceptor, &byte, 1, offset, 0));
}

TEST_F(ScifRegister, DontforkOnRegisteredMemoryWorks) {
  const Pair pair;
  Pages pages(2);
  const off_t offset = scif_register(pair.connector, pages, 2 * kPage, 0, kRw, 0);
  ASSERT_EQ(::madvise(pages, 2 * kPage, MADV_DONTFORK), 0);
  Child child([] { return true; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(scif_vwriteto(pair.acceptor, const_cast<char*>("x"), 1, offset, 0), 0);
  EXPECT_EQ(pages[0], 'x');
}

TEST_F(ScifRegister, AChildThatClosesItsCopyLeavesTheWindows) {
  const Pair pair;
  Pages pages(1);
  const off_t offset = scif_register(pair.connector, pages, kPage, 0, kRw, 0);
  Child child([&] { return scif_close(pair.connector) == 0 && scif_close(pair.acceptor) == 0; });
  ASSERT_EQ(child.wait(), 0);
  EXPECT_EQ(scif_vwriteto(pair.acceptor, const_cast<char*>("x"), 1, offset, 0), 0) << std::strerror(errno);
  EXPECT_EQ(pages[0], 'x');
}

TEST_F(ScifUnregister, ChecksItsArguments) {
  const Pair pair;
  Pages pages(4);
  const off_t offset = scif_register(pair.connector, pages, 4 * kPage, 0, kRw, 0);
  EXPECT_FAILS(EINVAL, scif_unregister(pair.connector, offset, 0));
  EXPECT_FAILS(EINVAL, scif_unregister(pair.connector, offset, kPage + 1));
  EXPECT_FAILS(EINVAL, scif_unregister(pair.connector, offset + 1, kPage));
  EXPECT_FAILS(EINVAL, scif_unregister(pair.connector, offset, kPage));
  EXPECT_FAILS(EINVAL, scif_unregister(pair.connector, offset + kStep, 4 * kPage));
  EXPECT_EQ(scif_unregister(pair.connector, 0x100000, kPage), 0) << "nothing there";
  EXPECT_EQ(scif_unregister(pair.connector, offset, 4 * kPage), 0);
}

TEST_F(ScifUnregister, ClosesAllWindowsInsideTheRange) {
  const Pair pair;
  Pages pages(4);
  for (off_t i = 0; i < 4; ++i) {
    ASSERT_EQ(scif_register(pair.connector, pages.at(kPage * i), kPage, 0x10000 + i * kStep, kRw, SCIF_MAP_FIXED),
              0x10000 + i * kStep);
  }
  EXPECT_EQ(scif_unregister(pair.connector, 0x10000 + kStep, 2 * kPage), 0);
  char byte = 0;
  EXPECT_EQ(scif_vreadfrom(pair.acceptor, &byte, 1, 0x10000, 0), 0);
  EXPECT_FAILS(ENXIO, scif_vreadfrom(pair.acceptor, &byte, 1, 0x10000 + kStep, 0));
  EXPECT_FAILS(ENXIO, scif_vreadfrom(pair.acceptor, &byte, 1, 0x10000 + 2 * kStep, 0));
  EXPECT_EQ(scif_vreadfrom(pair.acceptor, &byte, 1, 0x10000 + 3 * kStep, 0), 0);
}

TEST_F(ScifUnregister, LeavesTheOwnersMemoryAsItIs) {
  const Pair pair;
  Pages pages(4);
  fill(pages, 4 * kPage, 5);
  const off_t offset = scif_register(pair.connector, pages, 4 * kPage, 0, kRw, 0);
  EXPECT_EQ(scif_unregister(pair.connector, offset, 4 * kPage), 0);
  EXPECT_TRUE(is_filled(pages, 4 * kPage, 5));
  fill(pages, 4 * kPage, 6);
  EXPECT_TRUE(is_filled(pages, 4 * kPage, 6));
}

TEST_F(ScifUnregister, NoNewAccessAfterItButAMappingAndItsOffsetsLiveOn) {
  const Pair pair;
  Pages pages(1);
  ASSERT_EQ(scif_register(pair.connector, pages, kPage, 0x20000, kRw, SCIF_MAP_FIXED), 0x20000);
  auto* mapped = static_cast<char*>(scif_mmap(nullptr, kPage, kRw, 0, pair.acceptor, 0x20000));
  ASSERT_NE(mapped, SCIF_MMAP_FAILED);
  EXPECT_EQ(scif_unregister(pair.connector, 0x20000, kPage), 0);
  char byte = 0;
  EXPECT_FAILS(ENXIO, scif_vreadfrom(pair.acceptor, &byte, 1, 0x20000, 0));
  EXPECT_EQ(scif_mmap(nullptr, kPage, kRw, 0, pair.acceptor, 0x20000), SCIF_MMAP_FAILED);
  EXPECT_EQ(errno, ENXIO);
  EXPECT_FAILS(ENXIO, scif_fence_signal(pair.acceptor, 0, 0, 0x20000, 1, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE));
  mapped[7] = 'm';
  EXPECT_EQ(pages[7], 'm');
  EXPECT_EQ(scif_munmap(mapped, kPage), 0);
}

TEST_F(ScifMmap, MapsThePeersWindowAsSharedMemory) {
  const Pair pair;
  Pages pages(2);
  fill(pages, 2 * kPage, 1);
  const off_t offset = scif_register(pair.connector, pages, 2 * kPage, 0, kRw, 0);
  auto* mapped = static_cast<char*>(scif_mmap(nullptr, 2 * kPage, kRw, 0, pair.acceptor, offset));
  ASSERT_NE(mapped, SCIF_MMAP_FAILED);
  EXPECT_TRUE(is_filled(mapped, 2 * kPage, 1));
  fill(mapped, 2 * kPage, 2);
  EXPECT_TRUE(is_filled(pages, 2 * kPage, 2));
  fill(pages, 2 * kPage, 3);
  EXPECT_TRUE(is_filled(mapped, 2 * kPage, 3));
  EXPECT_EQ(scif_munmap(mapped, 2 * kPage), 0);
}

TEST_F(ScifMmap, MaySpanWindowsThatFollowEachOther) {
  const Pair pair;
  Pages a(2);
  Pages b(2);
  fill(a, 2 * kPage, 1);
  fill(b, 2 * kPage, 2);
  ASSERT_EQ(scif_register(pair.connector, a, 2 * kPage, 0x40000, kRw, SCIF_MAP_FIXED), 0x40000);
  ASSERT_EQ(scif_register(pair.connector, b, 2 * kPage, 0x40000 + 2 * kStep, kRw, SCIF_MAP_FIXED), 0x40000 + 2 * kStep);
  auto* mapped = static_cast<char*>(scif_mmap(nullptr, 2 * kPage, kRw, 0, pair.acceptor, 0x40000 + kStep));
  ASSERT_NE(mapped, SCIF_MMAP_FAILED);
  EXPECT_EQ(std::memcmp(mapped, a.at(kPage), kPage), 0);
  EXPECT_EQ(std::memcmp(mapped + kPage, b, kPage), 0);
  EXPECT_EQ(scif_munmap(mapped, 2 * kPage), 0);
}

TEST_F(ScifMmap, ChecksArgumentsRangeProtectionAndState) {
  Pair pair;
  Pages pages(1);
  ASSERT_EQ(scif_register(pair.connector, pages, kPage, 0x40000, SCIF_PROT_WRITE, SCIF_MAP_FIXED), 0x40000);
  const auto fails = [&](int error, void* where, std::size_t bytes, int protection, int flags, off_t offset) {
    errno = 0;
    EXPECT_EQ(scif_mmap(where, bytes, protection, flags, pair.acceptor, offset), SCIF_MMAP_FAILED);
    EXPECT_EQ(errno, error);
  };
  fails(EINVAL, nullptr, 0, SCIF_PROT_WRITE, 0, 0x40000);
  fails(EINVAL, nullptr, 100, SCIF_PROT_WRITE, 0, 0x40000);
  fails(EINVAL, nullptr, kPage, SCIF_PROT_WRITE, 0, 0x40001);
  fails(EINVAL, nullptr, kPage, 8, 0, 0x40000);
  fails(EINVAL, nullptr, kPage, 0, 0, 0x40000);
  fails(EINVAL, pages, kPage, 0, SCIF_MAP_FIXED, 0x40000);
  fails(EINVAL, nullptr, kPage, SCIF_PROT_WRITE, 1, 0x40000);
  fails(EINVAL, pages.at(1), kPage, SCIF_PROT_WRITE, SCIF_MAP_FIXED, 0x40000);
  fails(ENXIO, nullptr, 2 * kPage, SCIF_PROT_WRITE, 0, 0x40000);
  fails(ENXIO, nullptr, kPage, SCIF_PROT_WRITE, 0, 0x80000);
  fails(EPERM, nullptr, kPage, SCIF_PROT_READ, 0, 0x40000);
  const Epd epd;
  EXPECT_EQ(scif_mmap(nullptr, kPage, kRw, 0, epd, 0x40000), SCIF_MMAP_FAILED);
  EXPECT_EQ(errno, ENOTCONN);
  pair.connector.close();
  fails(ECONNRESET, nullptr, kPage, SCIF_PROT_WRITE, 0, 0x40000);
}

TEST_F(ScifMmap, FixedReplacesWhatIsThereEvenTheOwnRegisteredBuffer) {
  const Pair pair;
  Pages theirs(2);
  Pages mine(2);
  fill(theirs, 2 * kPage, 1);
  fill(mine, 2 * kPage, 2);
  const off_t offset = scif_register(pair.connector, theirs, 2 * kPage, 0, kRw, 0);
  const off_t own = scif_register(pair.acceptor, mine, 2 * kPage, 0, kRw, 0);
  ASSERT_EQ(scif_mmap(mine, 2 * kPage, kRw, SCIF_MAP_FIXED, pair.acceptor, offset), static_cast<void*>(mine.at(0)));
  EXPECT_TRUE(is_filled(mine, 2 * kPage, 1));
  mine[5] = 'm';
  EXPECT_EQ(theirs[5], 'm');
  std::vector<char> seen(2 * kPage);
  EXPECT_EQ(scif_vreadfrom(pair.connector, seen.data(), seen.size(), own, 0), 0);
  EXPECT_TRUE(is_filled(seen.data(), seen.size(), 2)) << "the window is the memory that was registered";
}

TEST_F(ScifMmap, OutlivesUnregisterAndCloseOnBothSidesAndTheDeathOfThePeer) {
  const Listening listening;
  Owner owner(listening, 4, 9);
  Epd epd(listening.accept());
  auto* mapped = static_cast<char*>(scif_mmap(nullptr, 4 * kPage, kRw, 0, epd, owner.offset()));
  ASSERT_NE(mapped, SCIF_MMAP_FAILED) << std::strerror(errno);
  owner.child().kill();
  owner.child().wait();
  epd.close();
  EXPECT_TRUE(is_filled(mapped, 4 * kPage, 9));
  fill(mapped, 4 * kPage, 8);
  EXPECT_TRUE(is_filled(mapped, 4 * kPage, 8));
  EXPECT_EQ(scif_munmap(mapped, 4 * kPage), 0);
}

TEST_F(ScifMmap, IsNotInheritedByFork) {
  const Pair pair;
  Pages pages(1);
  const off_t offset = scif_register(pair.connector, pages, kPage, 0, kRw, 0);
  auto* mapped = static_cast<char*>(scif_mmap(nullptr, kPage, kRw, 0, pair.acceptor, offset));
  Child child([&] {
    unsigned char there = 0;
    return ::mincore(mapped, kPage, &there) == -1 && errno == ENOMEM;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(scif_munmap(mapped, kPage), 0);
}

}  // namespace
}  // namespace wherry::scif_test
