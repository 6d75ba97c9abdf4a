// SPDX-License-Identifier: Apache-2.0
#include "base/machine.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/child_process.hpp"
#include "base/scoped_environment.hpp"

namespace wherry {
namespace {

TEST(OwnMachine, HasTheBootIdThatTheKernelShows) {
  std::string shown;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> shown;
  std::erase(shown, '-');
  std::string text;
  for (const std::uint8_t byte : own_boot_id()) {
    char digits[3] = {};
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  EXPECT_EQ(text, shown);
  EXPECT_EQ(own_machine().boot, own_boot_id());
  EXPECT_EQ(own_machine().user, ::geteuid());
}

TEST(OwnMachine, IsTheSameForAllProcessesOfOneKernelNamespaceAndUser) {
  const MachineId parents = own_machine();
  EXPECT_EQ(Child([&] { return own_machine() == parents && own_machine().hash() == parents.hash(); }).wait(), 0);
}

TEST(OwnMachine, IsAnotherInAnotherNetworkNamespaceOfTheSameKernel) {
  const MachineId parents = own_machine();
  const auto elsewhere = [&] {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return true;  // not permitted here
    return own_machine().network != parents.network && own_machine().hash() != parents.hash() &&
           is_own_kernel(parents.boot);
  };
  EXPECT_EQ(Child(elsewhere).wait(), 0);
}

TEST(OwnMachine, LooksLikeAnotherOneWhereTheSettingSays) {
  const MachineId plain = own_machine();
  const ScopedEnvironment first("WHERRY_MACHINE", "a");
  const MachineId one = own_machine();
  EXPECT_NE(one, plain);
  EXPECT_FALSE(is_own_kernel(plain.boot));
  EXPECT_TRUE(is_own_kernel(one.boot));
  const ScopedEnvironment second("WHERRY_MACHINE", "b");
  EXPECT_NE(own_machine(), one);
  EXPECT_NE(own_machine().hash(), one.hash());
}

TEST(OwnMachine, IsNoKernelThatIsNotKnown) { EXPECT_FALSE(is_own_kernel(BootId{})); }

TEST(MachineHash, DependsOnEachField) {
  const MachineId machine{.boot = {1, 2, 3}, .network = 4, .user = 5};
  std::array<std::uint64_t, 5> hashes{machine.hash(), MachineId{.boot = {1, 2, 4}, .network = 4, .user = 5}.hash(),
                                      MachineId{.boot = {1, 2, 3}, .network = 5, .user = 5}.hash(),
                                      MachineId{.boot = {1, 2, 3}, .network = 4, .user = 6}.hash(),
                                      machine.hash("job")};
  std::ranges::sort(hashes);
  EXPECT_EQ(std::ranges::adjacent_find(hashes), hashes.end());
}

}  // namespace
}  // namespace wherry
