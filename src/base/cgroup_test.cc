// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace wherry {
namespace {

namespace fs = std::filesystem;

// A file system root for this test.
class Cgroup : public ::testing::Test {
 protected:
  Cgroup() {
    std::string name = (fs::temp_directory_path() / "wherry-cgroup-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~Cgroup() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }

  fs::path root_;
};

TEST_F(Cgroup, WithoutFilesThereIsNoLimit) {
  EXPECT_FALSE(cgroup_memory_limit(root_));
  EXPECT_FALSE(cgroup_cpu_limit(root_));
}

TEST_F(Cgroup, Version2TakesTheLeastLimitUpToTheRoot) {
  write("proc/self/cgroup", "0::/a/b");
  write("sys/fs/cgroup/a/b/memory.max", "max");
  write("sys/fs/cgroup/a/memory.max", "1048576");
  write("sys/fs/cgroup/a/b/cpu.max", "300000 100000");
  write("sys/fs/cgroup/a/cpu.max", "150000 100000");
  EXPECT_EQ(cgroup_memory_limit(root_), 1048576U);
  EXPECT_DOUBLE_EQ(cgroup_cpu_limit(root_).value(), 1.5);
}

TEST_F(Cgroup, Version2InAContainerReadsItsOwnRoot) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/memory.max", "4096");
  write("sys/fs/cgroup/cpu.max", "max 100000");
  EXPECT_EQ(cgroup_memory_limit(root_), 4096U);
  EXPECT_FALSE(cgroup_cpu_limit(root_));
}

TEST_F(Cgroup, Version1ReadsEachControllersOwnTree) {
  write("proc/self/cgroup", "4:memory:/job\n2:cpu:/slice\n1:cpuset:/x");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2048");
  write("sys/fs/cgroup/cpu/slice/cpu.cfs_quota_us", "50000");
  write("sys/fs/cgroup/cpu/slice/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cgroup_memory_limit(root_), 2048U);
  EXPECT_DOUBLE_EQ(cgroup_cpu_limit(root_).value(), 0.5);
}

TEST_F(Cgroup, Version1WithoutLimitsHasNone) {
  write("proc/self/cgroup", "4:memory:/\n2:cpu,cpuacct:/");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(cgroup_memory_limit(root_));
  EXPECT_FALSE(cgroup_cpu_limit(root_));
}

TEST_F(Cgroup, LinesThatAreNoMembershipAreSkipped) {
  write("proc/self/cgroup", "nonsense\n\n0::/");
  write("sys/fs/cgroup/memory.max", "77");
  EXPECT_EQ(cgroup_memory_limit(root_), 77U);
}

}  // namespace
}  // namespace wherry
