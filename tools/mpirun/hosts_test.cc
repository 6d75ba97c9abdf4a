// SPDX-License-Identifier: Apache-2.0
#include "mpirun/hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <wherry/error.hpp>

#include "mpirun/usage_error.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::tools {
namespace {

TEST(ThisMachine, HasTheNamesOfTheLoopback) {
  for (const char* name : {"localhost", "LOCALHOST", "localhost.localdomain", "127.0.0.1", "127.0.1.1", "::1"}) {
    EXPECT_TRUE(is_this_machine(name, "node1")) << name;
  }
}

TEST(ThisMachine, HasItsOwnNameWithOrWithoutADomain) {
  EXPECT_TRUE(is_this_machine("node1", "node1.example.org"));
  EXPECT_TRUE(is_this_machine("Node1.example.org", "node1"));
  EXPECT_TRUE(is_this_machine("node1.example.org", "node1.example.org"));
}

TEST(ThisMachine, IsNoneOfAnotherNameOrDomain) {
  EXPECT_FALSE(is_this_machine("node1.example.com", "node1.example.org"));
  EXPECT_FALSE(is_this_machine("node11", "node1"));
  EXPECT_FALSE(is_this_machine("10.0.0.1", "node1"));
  EXPECT_FALSE(is_this_machine("", "node1"));
}

class Hostfile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const auto file = directory_.path() / "hosts";
    std::ofstream(file) << text;
    return file;
  }

  int slots(const std::string& text) { return slots_of(read_hostfile(write(text)), "node1", "--hostfile hosts"); }

 private:
  test::TemporaryDirectory directory_;
};

TEST_F(Hostfile, SumsTheSlotsOfBothLaunchersSpellings) {
  EXPECT_EQ(slots("# two of Open MPI\nlocalhost slots=2 max_slots=4\n\nme@node1:3 # of MPICH\n::1\n"), 2 + 3 + 1);
}

TEST_F(Hostfile, NamesTheLineOfAnotherMachine) {
  EXPECT_THAT([&] { slots("localhost\nnode7 slots=2\n"); },
              testing::ThrowsMessage<UsageError>(testing::AllOf(
                  testing::HasSubstr("--hostfile hosts, line 2 names node7"), testing::HasSubstr("write localhost"))));
}

TEST_F(Hostfile, RefusesACountThatIsNoNumber) {
  for (const char* text : {"localhost slots=many", "localhost:", "localhost:-1", "localhost slots=99999999999"}) {
    EXPECT_THROW(slots(text), UsageError) << text;
  }
}

TEST_F(Hostfile, ThatCannotBeReadIsNamed) {
  EXPECT_THAT([] { read_hostfile("/no/such/hosts"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("/no/such/hosts: No such file")));
  EXPECT_THAT([] { read_hostfile("/"); }, testing::ThrowsMessage<Error>(testing::HasSubstr("Is a directory")));
}

TEST(HostList, CountsEachMention) {
  EXPECT_EQ(slots_of(hosts_of_list("localhost,node1:3,localhost"), "node1", "--host"), 5);
  EXPECT_THROW(slots_of(hosts_of_list("localhost,node7"), "node1", "--host localhost,node7"), UsageError);
}

}  // namespace
}  // namespace wherry::tools
