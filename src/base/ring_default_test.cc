// SPDX-License-Identifier: Apache-2.0
#include "base/ring_default.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "tests/common/temporary_directory.hpp"

namespace wherry {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(RingDefault, IsTwiceTheSecondLevelCacheAndAPowerOfTwo) {
  EXPECT_EQ(default_ring({kMiB, 24 * kGiB}).bytes, 2 * kMiB);
  EXPECT_EQ(default_ring({2 * kMiB, 24 * kGiB}).bytes, 4 * kMiB);
  EXPECT_EQ(default_ring({kMiB + kMiB / 4, 24 * kGiB}).bytes, 4 * kMiB);
  EXPECT_EQ(default_ring({kMiB, 24 * kGiB}).from, "twice the L2 of 1M, at least 1M");
}

TEST(RingDefault, IsOneMebibyteAtLeast) {
  EXPECT_EQ(default_ring({256 << 10, 24 * kGiB}).bytes, kMiB);
  EXPECT_EQ(default_ring({}).bytes, kMiB);
  EXPECT_EQ(default_ring({}).from, "the least, as the L2 is unknown");
  EXPECT_EQ(default_ring({kMiB, 24 << 20}).bytes, kMiB);
}

TEST(RingDefault, IsSmallerWhereMemoryIsNarrow) {
  EXPECT_EQ(default_ring({2 * kMiB, 64 << 20}).bytes, kMiB);
  EXPECT_EQ(default_ring({2 * kMiB, 128 << 20}).bytes, 2 * kMiB);
  EXPECT_EQ(default_ring({2 * kMiB, 128 << 20}).from, "at most 1/64 of 128M of memory, at least 1M");
  EXPECT_EQ(default_ring({2 * kMiB, 0}).bytes, 4 * kMiB);
}

TEST(RingDefault, OfAPeersRingAsMuchIsUsedAsMemoryAllows) {
  EXPECT_EQ(default_peer_ring({0, 8 << 20}).bytes, kMiB);
  EXPECT_EQ(default_peer_ring({0, 64 << 20}).bytes, 4 * kMiB);
  EXPECT_EQ(default_peer_ring({0, 24 * kGiB}).bytes, kGiB);
  EXPECT_EQ(default_peer_ring({}).bytes, kGiB);
  EXPECT_EQ(default_peer_ring({}).from, "the most, as memory is unknown");
}

class MachineAt : public ::testing::Test {
 protected:
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_.path() / file).parent_path());
    std::ofstream(root_.path() / file) << text << "\n";
  }
  [[nodiscard]] Machine machine() const { return machine_at(root_.path(), 0); }

  const test::TemporaryDirectory root_;
};

TEST_F(MachineAt, TheSecondLevelIsFoundByItsLevelAndNotByItsNumber) {
  for (const auto& [index, level, size] : {std::tuple{"0", "1", "32K"}, {"1", "2", "1280K"}, {"2", "3", "30M"}}) {
    const fs::path cache = fs::path("sys/devices/system/cpu/cpu0/cache") / (std::string("index") + index);
    write(cache / "level", level);
    write(cache / "size", size);
  }
  EXPECT_EQ(machine().second_level_cache, 1280U << 10);
}

TEST_F(MachineAt, WithoutADescriptionTheCacheIsUnknown) { EXPECT_EQ(machine().second_level_cache, 0U); }

TEST_F(MachineAt, AControlGroupsLimitIsItsMemory) {
  EXPECT_GT(machine().memory, 64U << 20);
  write("proc/self/cgroup", "0::/job");
  write("sys/fs/cgroup/job/memory.max", "67108864");
  EXPECT_EQ(machine().memory, 64U << 20);
}

TEST(RingDefault, BytesAreWrittenAsInAVariable) {
  EXPECT_EQ(bytes_text(0), "0");
  EXPECT_EQ(bytes_text(1000), "1000");
  EXPECT_EQ(bytes_text(65536), "64K");
  EXPECT_EQ(bytes_text(1536 << 10), "1536K");
  EXPECT_EQ(bytes_text(kGiB), "1G");
}

}  // namespace
}  // namespace wherry
