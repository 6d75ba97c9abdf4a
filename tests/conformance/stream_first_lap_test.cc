// SPDX-License-Identifier: Apache-2.0
// When the pages of a ring come into being: never for an idle connection, ahead of one that streams, and never more
// than it uses anyway.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "memory/huge_pages.hpp"
#include "tests/common/seccomp.hpp"
#include "tests/conformance/child_process.hpp"
#include "tests/conformance/stream_pair.hpp"

namespace wherry::conformance {
namespace {

constexpr std::size_t kMessage = 1024;

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// How many bytes of whole pages of `memory` there are.
std::size_t present(std::span<const std::byte> memory) {
  const std::uintptr_t page = page_bytes();
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory.data()) & ~(page - 1);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size();
  std::vector<unsigned char> pages((end - start + page - 1) / page);
  EXPECT_EQ(::mincore(std::bit_cast<void*>(start), end - start, pages.data()), 0);
  return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](auto at) { return (at & 1) != 0; })) *
         page;
}

long faults_of_this_thread() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

class StreamFirstLap : public StreamTest {
 protected:
  /// Before anything is sent into it.
  static std::span<const std::byte> ring_of(Stream& sender) { return sender.reserve(sender.send_capacity()).first; }

  void pass_on(const Streams& from, std::size_t bytes, std::uint64_t position) const {
    auto& ends = const_cast<Streams&>(from);
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(bytes, position), kTimeout).ok());
    expect_bytes(ends.acceptor, pattern_, bytes, position);
  }
};

TEST_P(StreamFirstLap, ARingThatIsHardlyUsedStaysWithoutPages) {
  Streams ends = connect_pair({}, {.ring_bytes = 8 << 20});
  const auto ring = ring_of(ends.connector);
  ASSERT_EQ(ring.size(), std::size_t{8} << 20);
  EXPECT_EQ(present(ring), 0U);
  std::uint64_t position = 0;
  for (; position < (16 << 10); position += kMessage) pass_on(ends, kMessage, position);
  EXPECT_LE(present(ring), position + page_bytes());
}

TEST_P(StreamFirstLap, AStreamFindsItsPagesThereAndNeverMoreThanTwiceWhatItSent) {
  for (const std::size_t capacity : {std::size_t{1} << 20, std::size_t{8} << 20}) {
    Streams ends = connect_pair({}, {.ring_bytes = capacity});
    const auto ring = ring_of(ends.connector);
    std::size_t missed = 0;
    for (std::uint64_t position = 0; position < 2 * capacity; position += kMessage) {
      const std::size_t place = position % capacity;
      if (position > (64 << 10) && present(ring.subspan(place, kMessage)) == 0) ++missed;
      pass_on(ends, kMessage, position);
      // Where it runs against the end of a huge page, that is brought in a little before.
      if (position < capacity && position % (64 << 10) == 0) {
        ASSERT_LE(present(ring), 2 * position + (512 << 10));
      }
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(missed, 0U) << "of a ring of " << capacity;
    EXPECT_EQ(present(ring), capacity);
  }
}

TEST_P(StreamFirstLap, NoMoreThanOneHugePageIsBroughtInAtOnceOrAheadForSmallerMessages) {
  constexpr std::size_t kRing = std::size_t{16} << 20;
  constexpr std::size_t kSmaller = std::size_t{16} << 10;
  constexpr std::size_t kSmallPages = std::size_t{192} << 10;
  Streams ends = connect_pair({}, {.ring_bytes = kRing});
  const auto ring = ring_of(ends.connector);
  std::size_t before = 0;
  for (std::uint64_t position = 0; position < kRing; position += kSmaller) {
    pass_on(ends, kSmaller, position);
    const std::size_t now = present(ring);
    ASSERT_LE(now - before, memory::kHugePage + kSmallPages) << "by one message, after " << position;
    ASSERT_LE(now, position + kSmaller + memory::kHugePage + kSmallPages + 2 * page_bytes());
    before = now;
  }
}

TEST_P(StreamFirstLap, AMessageWaitsForFewPagesUnlessItIsOneOfAThousand) {
  constexpr std::size_t kRing = std::size_t{1} << 20;  // too small for huge pages
  for (const std::size_t message : {std::size_t{256}, kMessage, 4 * kMessage, 8 * kMessage}) {
    Streams ends = connect_pair({}, {.ring_bytes = kRing});
    const auto ring = ring_of(ends.connector);
    const std::size_t most = std::max(std::size_t{16} << 10, 5 * message) + 2 * page_bytes();
    std::size_t before = 0;
    for (std::uint64_t position = 0; position < kRing; position += message) {
      pass_on(ends, message, position);
      const std::size_t now = present(ring);
      ASSERT_LE(now - before, most) << "by " << message << " bytes, after " << position;
      before = now;
    }
  }
}

TEST_P(StreamFirstLap, AMessageThatIsWrittenInPlaceKeepsItsBytes) {
  constexpr std::size_t kRing = std::size_t{16} << 20;
  constexpr std::size_t kLarge = std::size_t{4} << 20;
  Streams ends = connect_pair({}, {.ring_bytes = kRing});
  pass_on(ends, 100, 0);
  for (std::uint64_t position = 100; position < 2 * kRing; position += kLarge) {
    const Regions space = ends.connector.reserve(kLarge);
    ASSERT_EQ(space.size(), kLarge);
    pattern_.fill(space.first, position);
    pattern_.fill(space.second, position + space.first.size());
    ASSERT_TRUE(ends.connector.commit(kLarge).ok());
    expect_bytes(ends.acceptor, pattern_, kLarge, position);
  }
}

TEST_P(StreamFirstLap, AProgramThatReservesAllThereIsGetsNoPagesBeforeItUsesThem) {
  Streams ends = connect_pair({}, {.ring_bytes = 8 << 20});
  const auto ring = ring_of(ends.connector);
  EXPECT_EQ(ends.connector.reserve(ring.size()).size(), ring.size());
  EXPECT_EQ(present(ring), 0U);
}

TEST_P(StreamFirstLap, AProgramThatReservesAllThatItMayLeaveUnreadGetsNoPagesBeforeItUsesThem) {
  constexpr std::size_t kMost = std::size_t{8} << 20;
  Streams ends = connect_pair({}, {.ring_bytes = 4 * kMost});
  const auto ring = ring_of(ends.connector);
  ASSERT_TRUE(ends.connector.limit_unread(kMost).ok());
  EXPECT_EQ(ends.connector.reserve(kMost).size(), kMost);
  EXPECT_EQ(present(ring), 0U);
}

TEST_P(StreamFirstLap, NothingIsBroughtInBehindWhatTheSenderUsesOfTheRing) {
  const ScopedEnvironment most("WHERRY_PEER_RING", "256K");
  Streams ends = connect_pair({}, {.ring_bytes = 1 << 20});
  const auto used = ring_of(ends.connector);
  ASSERT_EQ(used.size(), std::size_t{256} << 10);
  for (std::uint64_t position = 0; position < 4 * used.size(); position += kMessage) pass_on(ends, kMessage, position);
  EXPECT_EQ(present(used), used.size());
  const std::size_t last = used.size() + page_bytes();  // a ring need not begin with a page
  EXPECT_EQ(present({used.data() + last, (1 << 20) - last}), 0U);
}

WHERRY_ON_MAPPED_FABRICS(StreamFirstLap);

class StreamFirstLapOfProcesses : public StreamFirstLap {};

TEST_P(StreamFirstLapOfProcesses, TheReceiverFindsManyPagesWithOneFault) {
  if (!GetParam().maps) GTEST_SKIP() << "its sender does not reach the ring";
  if (WHERRY_THREAD_SANITIZER) GTEST_SKIP() << "it has faults of its own";
  constexpr std::size_t kRing = std::size_t{1} << 20;
  Streams ends = connect_pair({}, {.ring_bytes = kRing});
  std::array<std::byte, 4096> buffer{};
  long faults = 0;
  for (std::uint64_t position = 0; position < kRing; position += buffer.size()) {
    ASSERT_TRUE(ends.connector.send(pattern_.bytes(buffer.size(), position), kTimeout).ok());
    ASSERT_TRUE(ends.acceptor.wait_readable(kTimeout).ok());
    const long before = faults_of_this_thread();
    ASSERT_TRUE(ends.acceptor.receive_all(buffer, kTimeout).ok());
    faults += faults_of_this_thread() - before;
  }
  EXPECT_LT(faults, static_cast<long>(kRing / page_bytes() / 3));
}

TEST_P(StreamFirstLapOfProcesses, AKernelThatRefusesChangesNothing) {
  for (const int error : {EPERM, EINVAL, ENOMEM}) {
    ChildProcess sandboxed([&] {
      Streams ends = connect_pair({}, {.ring_bytes = 8 << 20});
      ASSERT_TRUE(refuse({SYS_madvise}, error));
      for (std::uint64_t position = 0; position < (10 << 20); position += 64 << 10) pass_on(ends, 64 << 10, position);
      ASSERT_EQ(ends.connector.reserve(3 << 20).size(), std::size_t{3} << 20);
    });
    EXPECT_EQ(sandboxed.exit_status(), 0) << error;
  }
}

WHERRY_ON_PROCESS_FABRICS(StreamFirstLapOfProcesses);

}  // namespace
}  // namespace wherry::conformance
