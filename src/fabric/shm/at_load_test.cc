// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/select.h>

#include <fstream>
#include <string>

namespace wherry::fabric::shm {
namespace {

/// How many descriptors the kernel's table of this process holds.
std::size_t descriptor_table_size() {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    std::size_t size = 0;
    if (name == "FDSize:" && status >> size) return size;
  }
  return 0;
}

// This test runs in a process of its own, which has made no connection.
TEST(AtLoad, ThereIsRoomForDescriptorsBeyondSelectBeforeAnyConnection) {
  EXPECT_GT(descriptor_table_size(), static_cast<std::size_t>(FD_SETSIZE));
}

}  // namespace
}  // namespace wherry::fabric::shm
