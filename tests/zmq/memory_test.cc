// SPDX-License-Identifier: Apache-2.0
#include "wherry_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zmq {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;
constexpr std::size_t kRegion = wherry_memory_t::region_bytes;

class ZmqMemory : public testing::Test {
 protected:
  ZmqMemory() {
    memory_.add_user();
    memory_.begin_watch();
  }
  ~ZmqMemory() override {
    memory_.end_watch();
    memory_.remove_user();
    EXPECT_EQ(memory_.mapped_bytes(), 0U);
  }
  using piece_t = wherry_memory_t::piece_t;
  void give(const piece_t& piece) { memory_.give(piece.data, piece.region); }
  /// A second after the last.
  bool look() { return memory_.release_unused(now_ += std::chrono::seconds(1)); }
  void come_and_go(std::size_t megabytes) {
    std::vector<piece_t> pieces(megabytes);
    for (piece_t& piece : pieces) piece = memory_.take(kMegabyte);
    for (const piece_t& piece : pieces) give(piece);
  }

  wherry_memory_t memory_;
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
};

/// How many of its pages are mapped. Pieces begin where a page does.
std::size_t pages_of(void* data, std::size_t bytes) {
  std::vector<unsigned char> there(bytes / 4096);
  if (::mincore(data, bytes, there.data()) != 0) return 0;
  return static_cast<std::size_t>(
      std::count_if(there.begin(), there.end(), [](unsigned char page) { return (page & 1) != 0; }));
}

TEST_F(ZmqMemory, SmallPiecesAndThoseOfNoUserAreNotItsBusiness) {
  EXPECT_EQ(memory_.take(wherry_memory_t::smallest - 1).data, nullptr);
  wherry_memory_t other;
  EXPECT_EQ(other.take(kMegabyte).data, nullptr);
  other.expect_user();
  const piece_t piece = other.take(kMegabyte);
  EXPECT_NE(piece.data, nullptr);
  other.give(piece.data, piece.region);
}

TEST_F(ZmqMemory, ASizeThatIsALieIsRefused) {
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, std::size_t{1} << 46, std::size_t{1} << 47}) {
    EXPECT_EQ(memory_.take(size).data, nullptr) << size;
  }
  EXPECT_EQ(memory_.mapped_bytes(), 0U);
}

TEST_F(ZmqMemory, PiecesOfAllSizesLieApartAndWhollyInMemory) {
  std::mt19937_64 random(1);
  struct Held {
    piece_t piece;
    std::size_t size;
    unsigned char mark;
  };
  std::vector<Held> held;
  const auto check_and_give = [&](std::size_t index) {
    const auto* bytes = static_cast<const unsigned char*>(held[index].piece.data);
    EXPECT_TRUE(bytes[0] == held[index].mark && bytes[held[index].size / 2] == held[index].mark &&
                bytes[held[index].size - 1] == held[index].mark);
    give(held[index].piece);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
  };
  for (int round = 0; round < 400; ++round) {
    const std::size_t octave = std::size_t{1} << (17 + random() % 7);
    const std::size_t size = octave + random() % octave;
    const piece_t piece = memory_.take(size);
    ASSERT_NE(piece.data, nullptr) << size;
    for (const Held& other : held) {
      const auto* begin = static_cast<const std::byte*>(piece.data);
      const auto* others = static_cast<const std::byte*>(other.piece.data);
      ASSERT_TRUE(begin + size <= others || others + other.size <= begin);
    }
    const auto mark = static_cast<unsigned char>(round);
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1})
      static_cast<unsigned char*>(piece.data)[at] = mark;
    held.push_back({piece, size, mark});
    if (held.size() > 12) check_and_give(random() % held.size());
  }
  while (!held.empty()) check_and_give(held.size() - 1);
}

TEST_F(ZmqMemory, WhatIsFreedIsTakenAgainFirst) {
  const piece_t first = memory_.take(300'000);
  const piece_t second = memory_.take(300'000);
  give(first);
  EXPECT_EQ(memory_.take(300'000).data, first.data);
  give(second);
  EXPECT_EQ(memory_.take(300'000).data, second.data);
  give(first);
  give(second);
}

/// Not if the settings forbid it, nor if memory is so fragmented that the kernel finds no place for its huge page of
/// zeros. Once found it stays as long as this process.
bool zeros_come_as_a_huge_page() {
  constexpr std::size_t kHuge = 2 * kMegabyte;
  void* memory = ::mmap(nullptr, 2 * kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const std::size_t into = reinterpret_cast<std::uintptr_t>(memory) % kHuge;
  auto* aligned = static_cast<volatile char*>(memory) + (into == 0 ? 0 : kHuge - into);
  auto* huge = const_cast<char*>(aligned);
  (void)::madvise(huge, kHuge, MADV_HUGEPAGE);
  const bool all = *aligned == 0 && pages_of(huge, kHuge) == kHuge / 4096;
  ::munmap(memory, 2 * kHuge);
  return all;
}

long faults_so_far() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST_F(ZmqMemory, APieceThatNobodyHasWrittenCostsNoFaultForEachPage) {
  std::array<piece_t, 16> pieces;
  std::size_t pages = 0;
  for (piece_t& piece : pieces) {
    piece = memory_.take(kRegion / 16);
    pages += pages_of(piece.data, kRegion / 16);
  }
  EXPECT_EQ(pages, 0U) << "nothing lies in a region but messages";
  EXPECT_EQ(memory_.mapped_bytes(), kRegion);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pieces[0].data) % (2 * kMegabyte), 0U) << "else no huge page fits";
  if (zeros_come_as_a_huge_page()) {
    // The kernel reads them: what a sanitizer notes of a read has faults of its own.
    const int file = ::memfd_create("copy", MFD_CLOEXEC);
    const long before = faults_so_far();
    for (const piece_t& piece : pieces) {
      EXPECT_EQ(::syscall(SYS_write, file, piece.data, kRegion / 16), static_cast<long>(kRegion / 16));
    }
    EXPECT_LE(faults_so_far() - before, 64) << "there are 1024 pages";
    ::close(file);
  }
  for (const piece_t& piece : pieces) give(piece);
}

TEST_F(ZmqMemory, WhatMessagesTookAMomentAgoIsKept) {
  come_and_go(40);
  EXPECT_EQ(memory_.mapped_bytes(), 40 * kMegabyte);
  come_and_go(20);
  EXPECT_FALSE(look());
  EXPECT_EQ(memory_.mapped_bytes(), 40 * kMegabyte) << "messages took it since the last look";
  come_and_go(20);
  EXPECT_FALSE(look());
  EXPECT_EQ(memory_.mapped_bytes(), 20 * kMegabyte);
  EXPECT_TRUE(look()) << "nothing was taken";
  EXPECT_EQ(memory_.mapped_bytes(), 0U);
}

TEST_F(ZmqMemory, ManyThatLookAfterItAtOnceLookAsOne) {
  come_and_go(40);
  EXPECT_FALSE(look());
  for (int other = 0; other < 3; ++other) EXPECT_FALSE(memory_.release_unused(now_));
  EXPECT_EQ(memory_.mapped_bytes(), 40 * kMegabyte) << "messages took it since the last look";
  EXPECT_TRUE(look());
  EXPECT_TRUE(memory_.release_unused(now_)) << "they all see that nothing was taken";
  come_and_go(1);
  EXPECT_FALSE(memory_.release_unused(now_));
}

TEST_F(ZmqMemory, MessagesThatAreFreedWhenNobodyLooksAnyMoreLeaveLittle) {
  std::vector<piece_t> pieces(200);
  for (piece_t& piece : pieces) piece = memory_.take(kMegabyte);
  EXPECT_FALSE(look());
  EXPECT_TRUE(look());
  memory_.end_watch();
  for (const piece_t& piece : pieces) give(piece);
  EXPECT_LE(memory_.mapped_bytes(), wherry_memory_t::least_kept);
  memory_.begin_watch();
}

TEST_F(ZmqMemory, TheLastThatLooksAfterItLeavesLittleBehind) {
  memory_.begin_watch();
  come_and_go(200);
  memory_.end_watch();
  EXPECT_EQ(memory_.mapped_bytes(), 200 * kMegabyte) << "there is another";
  memory_.end_watch();
  EXPECT_LE(memory_.mapped_bytes(), wherry_memory_t::least_kept);
  memory_.begin_watch();
}

TEST(ZmqMemoryWithoutUsers, KeepsOneRegionWhileTheFirstIsExpected) {
  wherry_memory_t memory;
  memory.expect_user();
  std::vector<wherry_memory_t::piece_t> pieces(256);
  for (auto& piece : pieces) piece = memory.take(kMegabyte);
  for (const auto& piece : pieces) memory.give(piece.data, piece.region);
  EXPECT_LE(memory.mapped_bytes(), kRegion);
}

TEST(ZmqMemoryOfASmallMachine, KeepsLess) {
  wherry_memory_t memory(20 * kMegabyte);
  memory.add_user();
  memory.begin_watch();
  std::vector<wherry_memory_t::piece_t> pieces(64);
  for (auto& piece : pieces) piece = memory.take(kMegabyte);
  for (const auto& piece : pieces) memory.give(piece.data, piece.region);
  EXPECT_EQ(memory.mapped_bytes(), 20 * kMegabyte);
  memory.end_watch();
  memory.remove_user();
}

/// In a child, which ends with its limit.
TEST(ZmqMemoryOfASmallMachine, TakesWhatIsKeptBeforeItHasNoMore) {
  const pid_t child = ::fork();
  if (child == 0) {
    wherry_memory_t memory;
    memory.add_user();
    memory.begin_watch();
    const auto kept = memory.take(200 * kMegabyte);
    memory.give(kept.data, kept.region);
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    limit.rlim_cur = pages * 4096 + 20 * kMegabyte;
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
    ::_exit(memory.take(100 * kMegabyte).data != nullptr ? 0 : 1);
  }
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ZmqMemory, WhatIsKeptIsBounded) {
  for (const int size : {16, 128, 17, 33, 64, 300}) {
    const auto megabytes = static_cast<std::size_t>(size);
    std::vector<piece_t> pieces(600 / megabytes);
    for (piece_t& piece : pieces) piece = memory_.take(megabytes * kMegabyte);
    for (const piece_t& piece : pieces) give(piece);
    EXPECT_LE(memory_.mapped_bytes(), wherry_memory_t::most_kept);
  }
}

TEST_F(ZmqMemory, ALargePieceTakesWhatALargerOneHasLeft) {
  give(memory_.take(17 * kMegabyte));
  const std::size_t before = memory_.mapped_bytes();
  const piece_t piece = memory_.take(15 * kMegabyte);
  EXPECT_EQ(memory_.mapped_bytes(), before);
  give(piece);
  const piece_t smaller = memory_.take(6 * kMegabyte);
  EXPECT_EQ(memory_.mapped_bytes(), before + 6 * kMegabyte) << "it would take three times what it needs";
  give(smaller);
}

TEST_F(ZmqMemory, ALargePieceCountsAsOneHoweverLargeWhatItTakesIs) {
  constexpr std::size_t kBytes = std::size_t{128} << 10;
  for (const std::size_t megabytes : {6U, 8U, 10U}) {
    give(memory_.take(12 * kMegabyte));
    const piece_t large = memory_.take(megabytes * kMegabyte);
    std::vector<piece_t> pieces(32 * 32);
    for (piece_t& piece : pieces) piece = memory_.take(kBytes);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i % 32 != 0) give(pieces[i]);  // more than may stay: pages go back
    }
    for (std::size_t i = 0; i < pieces.size(); i += 32) give(pieces[i]);
    give(large);
    const std::array few{memory_.take(kBytes), memory_.take(kBytes)};
    std::memset(few[0].data, 1, kBytes);
    give(few[0]);
    EXPECT_EQ(pages_of(few[0].data, kBytes), kBytes / 4096) << "little is unused, and yet it went: " << megabytes;
    give(few[1]);
  }
}

TEST_F(ZmqMemory, NothingIsKeptWithoutUsers) {
  wherry_memory_t memory;
  memory.add_user();
  const piece_t late = memory.take(kMegabyte);
  const piece_t early = memory.take(kMegabyte * 2);
  memory.give(early.data, early.region);
  memory.remove_user();
  EXPECT_EQ(memory.mapped_bytes(), kRegion);
  memory.give(late.data, late.region);
  EXPECT_EQ(memory.mapped_bytes(), 0U);
}

TEST_F(ZmqMemory, FewMessagesThatStayDoNotHoldTheMemoryOfThoseThatWent) {
  constexpr std::size_t kBytes = std::size_t{128} << 10;
  std::vector<piece_t> pieces(32 * 32);
  for (piece_t& piece : pieces) {
    piece = memory_.take(kBytes);
    std::memset(piece.data, 1, kBytes);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i % 32 != 0) give(pieces[i]);
  }
  std::size_t pages = 0;
  for (std::size_t i = 0; i < pieces.size(); i += 32) pages += pages_of(pieces[i].data, kRegion);
  EXPECT_LE(pages * 4096, 32 * kBytes * 2 + wherry_memory_t::slack + kMegabyte);
  for (std::size_t i = 0; i < pieces.size(); i += 32) {
    EXPECT_EQ(static_cast<const char*>(pieces[i].data)[kBytes - 1], 1);
    give(pieces[i]);
  }
}

TEST_F(ZmqMemory, ThreadsTakeAndGiveEachOthersPieces) {
  struct Pair {
    std::mutex mutex;
    std::vector<std::pair<piece_t, std::uint64_t>> pieces;
  };
  Pair common;
  const auto play = [&](unsigned seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 2000; ++round) {
      const piece_t mine = memory_.take(wherry_memory_t::smallest + random() % kMegabyte);
      ASSERT_NE(mine.data, nullptr);
      *static_cast<std::uint64_t*>(mine.data) = random();
      std::pair<piece_t, std::uint64_t> other;
      {
        const std::scoped_lock guard(common.mutex);
        common.pieces.emplace_back(mine, *static_cast<std::uint64_t*>(mine.data));
        if (common.pieces.size() < 8) continue;
        std::swap(common.pieces[random() % 8], common.pieces.back());
        other = common.pieces.back();
        common.pieces.pop_back();
      }
      ASSERT_EQ(*static_cast<std::uint64_t*>(other.first.data), other.second);
      give(other.first);
      if (round % 100 == 0) (void)memory_.release_unused();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 4; ++i) threads.emplace_back(play, i);
  for (std::thread& thread : threads) thread.join();
  for (const auto& [piece, number] : common.pieces) give(piece);
}

TEST(ZmqMemoryOfAProcess, ServesAForkedChildWhateverAnotherThreadIsDoing) {
  const wherry_memory_user_t user;
  wherry_memory_t& memory = wherry_message_memory();
  const auto take_and_give = [&memory] {
    const wherry_memory_t::piece_t piece = memory.take(kMegabyte);
    memory.give(piece.data, piece.region);
  };
  const wherry_memory_t::piece_t inherited = memory.take(kMegabyte);
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) take_and_give();
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(50);
      memory.give(inherited.data, inherited.region);
      take_and_give();
      ::_exit(0);
    }
    int status = 1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  other.join();
  memory.give(inherited.data, inherited.region);
}

}  // namespace
}  // namespace zmq
