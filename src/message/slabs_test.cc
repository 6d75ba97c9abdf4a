// SPDX-License-Identifier: Apache-2.0
#include "message/slabs.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace wherry::message {
namespace {

constexpr std::size_t kPool = 1 << 16;

class SlabsTest : public ::testing::Test {
 protected:
  ~SlabsTest() override { slabs_->release(); }

  Slabs* const slabs_ = new Slabs(std::make_shared<memory::SharedMemory>(kPool));
};

TEST_F(SlabsTest, TheWholePoolIsOneBlockAndIsSoAgain) {
  for (int i = 0; i < 3; ++i) {
    const auto all = slabs_->take(kPool);
    ASSERT_NE(all, Slabs::kNone);
    EXPECT_EQ(slabs_->take(1), Slabs::kNone);
    slabs_->drop(all);
    std::vector<Slabs::Block> small;
    for (auto block = slabs_->take(1); block != Slabs::kNone; block = slabs_->take(1)) small.push_back(block);
    EXPECT_EQ(small.size(), kPool / 128);
    for (const auto block : small) slabs_->drop(block);
  }
  EXPECT_EQ(slabs_->in_use(), 0U);
}

TEST_F(SlabsTest, MoreThanThePoolIsNeverThere) { EXPECT_EQ(slabs_->take(kPool + 1), Slabs::kNone); }

TEST_F(SlabsTest, ABlockIsFreeWhenItsLastUserHasDroppedIt) {
  const auto block = slabs_->take(kPool);
  slabs_->share(block, 2);
  slabs_->drop(block);
  slabs_->drop(block);
  EXPECT_EQ(slabs_->take(1), Slabs::kNone);
  slabs_->drop(block);
  EXPECT_EQ(slabs_->take(kPool), block);
  slabs_->drop(block);
}

TEST_F(SlabsTest, OnlyABlockUsedBeforeLiesReady) {
  EXPECT_EQ(slabs_->take_ready(100), Slabs::kNone);
  const auto block = slabs_->take(100);
  EXPECT_EQ(slabs_->take_ready(100), Slabs::kNone);
  slabs_->drop(block);
  EXPECT_EQ(slabs_->take_ready(1000), Slabs::kNone) << "not of that size";
  EXPECT_EQ(slabs_->take_ready(100), block);
  slabs_->drop(block);
}

TEST_F(SlabsTest, AfterABurstMessagesKeepToFewBlocksAgain) {
  std::vector<Slabs::Block> burst;
  for (int i = 0; i < 200; ++i) burst.push_back(slabs_->take(100));
  for (const auto block : burst) slabs_->drop(block);
  std::set<Slabs::Block> used;
  for (int i = 0; i < 2000; ++i) {
    const auto block = slabs_->take(100);
    if (i >= 1000) used.insert(block);
    slabs_->drop(block);
  }
  EXPECT_LE(used.size(), 6U);
}

/// No two blocks overlap, whatever is taken and dropped, and every block that must be available is.
TEST_F(SlabsTest, BlocksNeverOverlap) {
  std::mt19937 random(7);
  std::map<std::size_t, std::pair<std::size_t, Slabs::Block>> taken;  // by offset: size, block
  for (int turn = 0; turn < 200'000; ++turn) {
    if (random() % 2 == 0) {
      const std::size_t bytes = std::size_t{1} << random() % 17;
      const auto block = slabs_->take(bytes);
      if (block == Slabs::kNone) continue;
      const std::size_t offset = slabs_->offset(block);
      const auto above = taken.lower_bound(offset);
      ASSERT_LE(offset + bytes, above == taken.end() ? kPool : above->first);
      if (above != taken.begin()) {
        const auto& [at, below] = *std::prev(above);
        ASSERT_LE(at + below.first, offset);
      }
      taken[offset] = {bytes, block};
    } else if (!taken.empty()) {
      const auto one = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
      slabs_->drop(one->second.second);
      taken.erase(one);
    }
    ASSERT_EQ(slabs_->in_use(), taken.size());
  }
  for (const auto& [offset, what] : taken) slabs_->drop(what.second);
  const auto all = slabs_->take(kPool);
  EXPECT_NE(all, Slabs::kNone);
  slabs_->drop(all);
}

}  // namespace
}  // namespace wherry::message
