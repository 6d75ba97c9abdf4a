// SPDX-License-Identifier: Apache-2.0
// Fences, signals and mappings of windows, with one thread and with several.
#include <array>
#include <cstring>
#include <random>
#include <thread>

#include "tests/conformance/window_pair.hpp"

namespace wherry::conformance {
namespace {

constexpr std::size_t kBytes = 16 * kPage;

std::atomic<std::uint64_t>& word_at(std::span<std::byte> memory, std::size_t offset) {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory.data() + offset);
}

class WindowFence : public WindowTest {
 protected:
  std::unique_ptr<SpacePair> pair_ = spaces();
  Space& near_ = pair_->near;
  Space& far_ = pair_->far;
  CallersPages near_pages_{kBytes}, far_pages_{kBytes};
  const std::uint64_t near_at_ = registered(near_, near_pages_.bytes());
  const std::uint64_t far_at_ = registered(far_, far_pages_.bytes());
};

TEST_P(WindowFence, WaitingForAMarkMakesEarlierRmaComplete) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    fill(near_pages_.bytes(), seed);
    ASSERT_EQ(near_.write_to(near_at_, kBytes, far_at_), 0);
    ASSERT_EQ(near_.wait(near_.mark(false)), 0);
    ASSERT_TRUE(filled(far_pages_.bytes(), seed));
  }
}

TEST_P(WindowFence, ThePeersRmaMayBeMarkedAndWaitedFor) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    fill(near_pages_.bytes(), seed);
    ASSERT_EQ(near_.write_to(near_at_, kBytes, far_at_), 0);
    // On a put fabric the news that a call has started may still be under way, ahead of its bytes.
    while (far_.mark(true).calls < near_.mark(false).calls) dawdle(0);
    ASSERT_EQ(far_.wait(far_.mark(true)), 0);
    ASSERT_TRUE(filled(far_pages_.bytes(), seed));
  }
}

TEST_P(WindowFence, AMarkThatWasNeverMadeIsRefused) {
  EXPECT_EQ(near_.wait({.of_peer = false, .calls = 1}), EINVAL);
  EXPECT_EQ(near_.wait({.of_peer = true, .calls = 1}), EINVAL);
  EXPECT_EQ(near_.wait({.of_peer = false, .calls = 0}), 0);
}

TEST_P(WindowFence, WhoSeesTheSignalSeesAllBytesBeforeIt) {
  auto& there = word_at(far_pages_.bytes(), 0);
  std::vector<std::byte> own(kBytes - 64);
  for (std::uint64_t round = 1; round < 100; ++round) {
    fill(own, round);
    ASSERT_EQ(near_.write_to(own, far_at_ + 64), 0);
    ASSERT_EQ(near_.signal(false, {}, window::Signal{.offset = far_at_, .value = round}), 0);
    while (there.load(std::memory_order_acquire) != round) dawdle(round);
    ASSERT_TRUE(filled(far_pages_.bytes().subspan(64), round));
  }
}

TEST_P(WindowFence, ASignalStoresNearAndFar) {
  ASSERT_EQ(near_.signal(false, window::Signal{near_at_ + 8, 11}, window::Signal{far_at_ + 16, 12}), 0);
  EXPECT_EQ(word_at(near_pages_.bytes(), 8), 11U);
  ASSERT_EQ(near_.signal(true, {}, window::Signal{far_at_ + 20, 0x1122334455667788}), 0);
  ASSERT_EQ(near_.wait(near_.mark(false)), 0);
  EXPECT_EQ(word_at(far_pages_.bytes(), 16) & 0xffffffff, 12U);
  std::uint64_t value = 0;
  std::memcpy(&value, far_pages_.bytes().data() + 20, sizeof value);
  EXPECT_EQ(value, 0x1122334455667788U) << "a multiple of 4 is enough";
}

TEST_P(WindowFence, ASignalNeedsAWordInAWindowThatMayBeWritten) {
  CallersPages pages(kPage);
  registered(far_, pages.bytes(), kRead, 0);
  EXPECT_EQ(near_.signal(false, {}, window::Signal{far_at_ + 2, 1}), EINVAL);
  EXPECT_EQ(near_.signal(false, window::Signal{near_at_ + 6, 1}, {}), EINVAL);
  EXPECT_EQ(near_.signal(false, {}, window::Signal{0, 1}), EPERM);
  EXPECT_EQ(near_.signal(false, {}, window::Signal{kPage, 1}), ENXIO);
  EXPECT_EQ(near_.signal(false, {}, window::Signal{far_at_ + kBytes - 4, 1}), ENXIO) << "half of it";
  EXPECT_EQ(near_.signal(false, window::Signal{near_at_ + kBytes, 1}, {}), ENXIO);
  EXPECT_EQ(near_.signal(false, {}, {}), 0);
}

TEST_P(WindowFence, ThreadsMayDoRmaOnOneConnectionAndASignalIsBehindAllOfIt) {
#if WHERRY_THREAD_SANITIZER
  if (pair_->ends.connector->map() == nullptr) GTEST_SKIP() << "late puts are races on purpose";
#endif
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kShare = kBytes / kThreads;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::vector<std::byte> own(kShare), back(kShare);
      for (std::uint64_t round = 1; round < 200; ++round) {
        fill(own, i * 1000 + round);
        ASSERT_EQ(near_.write_to(own, far_at_ + i * kShare, {.ordered = round % 2 == 0}), 0);
        ASSERT_EQ(near_.wait(near_.mark(false)), 0);
        ASSERT_EQ(near_.read_from(back, far_at_ + i * kShare), 0);
        ASSERT_EQ(std::memcmp(own.data(), back.data(), kShare), 0);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(far_.wait({.of_peer = true, .calls = near_.mark(false).calls}), 0);
}

TEST_P(WindowFence, WindowsComeAndGoWhileRmaRuns) {
  std::atomic<bool> done{false};
  std::thread registrar([&] {
    CallersPages pages(4 * kPage);
    for (std::uint64_t round = 0; round < 300; ++round) {
      const std::uint64_t at = (round % 7) * 4 * kPage;
      if (far_.register_memory(pages.bytes(), at, kReadWrite).error != 0) {
        EXPECT_EQ(far_.unregister(at, 4 * kPage), 0);
      }
    }
    done = true;
  });
  std::vector<std::byte> own(4 * kPage);
  std::mt19937_64 random(1);
  while (!done) {
    const std::uint64_t at = random() % 7 * 4 * kPage;
    const int error = random() % 2 == 0 ? near_.write_to(own, at, {.complete = true}) : near_.read_from(own, at);
    EXPECT_TRUE(error == 0 || error == ENXIO) << error;
    // The peer learns of each attempt, which takes a message without a map.
    if (error != 0 && !GetParam().maps) std::this_thread::sleep_for(100us);
  }
  registrar.join();
}

TEST_P(WindowFence, ALeavingPeerEndsTheWait) {
  ASSERT_EQ(near_.write_to(near_at_, kBytes, far_at_), 0);
  const auto mark = far_.mark(true);
  near_.close();
  const int error = far_.wait(mark);
  EXPECT_TRUE(error == 0 || error == ECONNRESET) << error;
  EXPECT_EQ(far_.signal(false, {}, window::Signal{near_at_, 1}), ECONNRESET);
}

WHERRY_ON_EVERY_FABRIC(WindowFence);

class WindowMap : public WindowFence {};

TEST_P(WindowMap, AMappingIsThePeersMemory) {
  const auto mapped = near_.map(nullptr, far_at_ + kPage, 4 * kPage, kReadWrite);
  ASSERT_EQ(mapped.error, 0);
  const std::span<std::byte> memory(mapped.start, 4 * kPage);
  fill(far_pages_.bytes().subspan(kPage, 4 * kPage), 1);
  EXPECT_TRUE(filled(memory, 1));
  fill(memory, 2);
  EXPECT_TRUE(filled(far_pages_.bytes().subspan(kPage, 4 * kPage), 2));
  ::munmap(mapped.start, memory.size());
}

TEST_P(WindowMap, AMappingMaySpanWindowsAndReplaceWhatWasThere) {
  CallersPages more(2 * kPage), place(6 * kPage);
  registered(far_, more.bytes(), kReadWrite, 4 * kPage);
  registered(far_, far_pages_.bytes().first(4 * kPage), kReadWrite, 0);
  std::byte* const where = place.bytes().data();
  const auto mapped = near_.map(where, 0, 6 * kPage, kReadWrite);
  ASSERT_EQ(mapped.error, 0);
  EXPECT_EQ(mapped.start, where);
  fill(place.bytes(), 3);
  EXPECT_EQ(std::memcmp(far_pages_.bytes().data(), where, 4 * kPage), 0);
  EXPECT_EQ(std::memcmp(more.bytes().data(), where + 4 * kPage, 2 * kPage), 0);
}

TEST_P(WindowMap, AMappingMayReplaceAnOwnRegisteredBuffer) {
  fill(far_pages_.bytes(), 4);
  const auto mapped = near_.map(near_pages_.bytes().data(), far_at_, kBytes, kReadWrite);
  ASSERT_EQ(mapped.error, 0);
  EXPECT_TRUE(filled(near_pages_.bytes(), 4)) << "the address now shows the peer's";
  fill(near_pages_.bytes(), 5);
  EXPECT_TRUE(filled(far_pages_.bytes(), 5));
  std::vector<std::byte> own(kBytes), zeros(kBytes);
  ASSERT_EQ(far_.read_from(own, near_at_), 0);
  EXPECT_EQ(own, zeros) << "the window goes on being what was registered";
}

TEST_P(WindowMap, AMappingOutlivesTheWindowTheConnectionAndTheOwnersMemory) {
  auto pages = std::make_unique<CallersPages>(4 * kPage);
  fill(pages->bytes(), 6);
  const std::uint64_t at = registered(far_, pages->bytes());
  const auto mapped = near_.map(nullptr, at, 4 * kPage, kReadWrite);
  ASSERT_EQ(mapped.error, 0);
  const std::span<std::byte> memory(mapped.start, 4 * kPage);
  EXPECT_EQ(far_.unregister(at, 4 * kPage), 0);
  fill(memory, 7);
  EXPECT_TRUE(filled(pages->bytes(), 7)) << "it is the owner's memory still";
  pages.reset();
  // Enough comes and goes for what is unused to be given back.
  for (int i = 0; i < 10; ++i) {
    CallersPages other(std::size_t{8} << 20);
    EXPECT_EQ(far_.unregister(registered(far_, other.bytes()), other.bytes().size()), 0);
  }
  pair_.reset();
  EXPECT_TRUE(filled(memory, 7));
  fill(memory, 8);
  EXPECT_TRUE(filled(memory, 8));
  ::munmap(mapped.start, memory.size());
}

TEST_P(WindowMap, OffsetsStayTakenUntilThePeerHasUnmappedTheLastPage) {
  CallersPages pages(4 * kPage);
  const auto register_again = [&] { return far_.register_memory(pages.bytes(), 0, kReadWrite).error; };
  registered(far_, pages.bytes(), kReadWrite, 0);
  const auto mapped = near_.map(nullptr, 0, 4 * kPage, kReadWrite);
  ASSERT_EQ(mapped.error, 0);
  ASSERT_EQ(far_.unregister(0, 4 * kPage), 0);
  EXPECT_EQ(register_again(), EBUSY);
  EXPECT_EQ(far_.register_memory(pages.bytes(), {}, kReadWrite).error, 0) << "elsewhere";
  ASSERT_EQ(window::unmap(mapped.start + kPage, 2 * kPage), 0);
  ASSERT_EQ(window::unmap(mapped.start, kPage), 0);
  EXPECT_EQ(register_again(), EBUSY);
  ASSERT_EQ(window::unmap(mapped.start + 3 * kPage, kPage), 0);
  EXPECT_EQ(register_again(), 0);
}

TEST_P(WindowMap, AsManyWindowsAsTheLimitSaysMayHaveBeenMappedAndUnmapped) {
  for (std::size_t i = 0; i < layout::kMostWindows + 10; ++i) {
    const std::uint64_t at = registered(far_, near_pages_.bytes().first(kPage));
    const auto mapped = near_.map(nullptr, at, kPage, kReadWrite);
    ASSERT_EQ(mapped.error, 0);
    ASSERT_EQ(far_.unregister(at, kPage), 0);
    ASSERT_EQ(window::unmap(mapped.start, kPage), 0);
  }
}

TEST_P(WindowMap, WhatMustNotBeMappedIsNot) {
  CallersPages pages(4 * kPage);
  registered(far_, pages.bytes(), kRead, 0);
  EXPECT_EQ(near_.map(nullptr, 0, kPage, kReadWrite).error, EPERM);
  EXPECT_EQ(near_.map(nullptr, 0, 5 * kPage, kRead).error, ENXIO);
  EXPECT_EQ(near_.map(nullptr, 0, 100, kRead).error, EINVAL);
  EXPECT_EQ(near_.map(nullptr, 64, kPage, kRead).error, EINVAL);
  EXPECT_EQ(near_.map(nullptr, 0, 0, kRead).error, EINVAL);
  EXPECT_EQ(near_.map(nullptr, 0, kPage, 0).error, EINVAL);
  const auto mapped = near_.map(nullptr, 0, kPage, kRead);
  EXPECT_EQ(mapped.error, 0);
  ::munmap(mapped.start, kPage);
  far_.unregister(0, 4 * kPage);
  EXPECT_EQ(near_.map(nullptr, 0, kPage, kRead).error, ENXIO);
}

WHERRY_ON_MAPPED_FABRICS(WindowMap);

class WindowNotMapped : public WindowFence {};

TEST_P(WindowNotMapped, AFabricWithoutAMapSaysThatItCannotMap) {
  if (GetParam().maps) GTEST_SKIP() << "has a map";
  EXPECT_EQ(near_.map(nullptr, far_at_, kBytes, kRead).error, ENOTSUP);
}

WHERRY_ON_EVERY_FABRIC(WindowNotMapped);

}  // namespace
}  // namespace wherry::conformance
