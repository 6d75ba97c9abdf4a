// SPDX-License-Identifier: Apache-2.0
#include "wherry_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace zmq {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;
constexpr std::size_t kRegion = wherry_memory_t::region_bytes;

class ZmqMemory : public testing::Test {
 protected:
  ZmqMemory() { memory_.add_user(); }
  ~ZmqMemory() override {
    memory_.remove_user();
    EXPECT_EQ(memory_.mapped_bytes(), 0U);
  }
  using piece_t = wherry_memory_t::piece_t;
  void give(const piece_t& piece) { memory_.give(piece.data, piece.region); }

  wherry_memory_t memory_;
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
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, std::size_t{1} << 46}) {
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
  for (const piece_t& piece : pieces) give(piece);
}

TEST_F(ZmqMemory, WhatMessagesTookAMomentAgoIsKept) {
  std::vector<piece_t> pieces(40);
  const auto come_and_go = [&] {
    for (piece_t& piece : pieces) piece = memory_.take(kMegabyte);
    for (const piece_t& piece : pieces) give(piece);
  };
  come_and_go();
  EXPECT_EQ(memory_.mapped_bytes(), 40 * kMegabyte);
  pieces.resize(20);
  come_and_go();
  EXPECT_FALSE(memory_.release_unused());
  EXPECT_EQ(memory_.mapped_bytes(), 40 * kMegabyte) << "messages took it since the last look";
  come_and_go();
  EXPECT_FALSE(memory_.release_unused());
  EXPECT_EQ(memory_.mapped_bytes(), 20 * kMegabyte);
  EXPECT_TRUE(memory_.release_unused()) << "nothing was taken";
  EXPECT_EQ(memory_.mapped_bytes(), 0U);
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
  const piece_t piece = memory_.take(13 * kMegabyte);
  EXPECT_EQ(memory_.mapped_bytes(), before);
  give(piece);
  const piece_t smaller = memory_.take(6 * kMegabyte);
  EXPECT_EQ(memory_.mapped_bytes(), before + 6 * kMegabyte) << "it would take three times what it needs";
  give(smaller);
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
