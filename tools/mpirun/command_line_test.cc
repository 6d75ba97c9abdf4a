// SPDX-License-Identifier: Apache-2.0
#include "mpirun/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mpirun/usage_error.hpp"

namespace wherry::tools {
namespace {

using Words = std::vector<std::string>;

class NormalisedCommandLine : public testing::Test {
 protected:
  NormalisedCommandLine() {
    command_.add_option("-n,--np", number_);
    command_.add_option("-f,--hostfile", file_);
    command_.add_flag("--print", print_);
  }

  Words operator()(const Words& words) { return normalised(command_, words); }

  std::string refusal(const Words& words) {
    try {
      normalised(command_, words);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  CLI::App command_;
  int number_ = 0;
  std::string file_;
  bool print_ = false;
};

TEST_F(NormalisedCommandLine, OneHyphenBecomesTwoBeforeALongName) {
  EXPECT_EQ((*this)({"-np", "2", "./app"}), (Words{"--np", "2", "./app"}));
  EXPECT_EQ((*this)({"-np=2", "-hostfile", "h", "-print", "./app"}),
            (Words{"--np=2", "--hostfile", "h", "--print", "./app"}));
}

TEST_F(NormalisedCommandLine, AShortNameTakesAValueInEachSpelling) {
  for (const Words& words : {Words{"-n", "2", "./app"}, Words{"-n2", "./app"}, Words{"-n=2", "./app"}}) {
    EXPECT_EQ((*this)(words), (Words{"-n", "2", "./app"}));
  }
}

TEST_F(NormalisedCommandLine, TheProgramsOwnArgumentsStayAsTheyAre) {
  const Words words{"-n", "2", "./app", "-np", "2", "--oversubscribe"};
  EXPECT_EQ((*this)(words), words);
}

TEST_F(NormalisedCommandLine, WhatFollowsTwoHyphensStaysAsItIs) {
  const Words words{"--np", "2", "--", "--oversubscribe", "-np", "--", "./app"};
  EXPECT_EQ((*this)(words), words);
}

TEST_F(NormalisedCommandLine, AValueMayBeginWithAHyphen) {
  EXPECT_EQ((*this)({"-f", "-np", "-np", "2", "./app"}), (Words{"-f", "-np", "--np", "2", "./app"}));
}

TEST_F(NormalisedCommandLine, AnOptionOfTheLauncherIsRefusedWithTheLineThatPassesItOn) {
  EXPECT_EQ(refusal({"-np", "2", "--oversubscribe", "./app"}),
            "--oversubscribe is an option of the MPI's launcher: write it between -- and --: "
            "wherry mpirun -np 2 -- --oversubscribe -- ./app");
  EXPECT_THAT(refusal({"-genv", "K", "a b", "-n", "2", "-wdir", "/tmp", "./app", "1"}),
              testing::EndsWith(": wherry mpirun -n 2 -- -genv K 'a b' -wdir /tmp -- ./app 1"));
}

TEST_F(NormalisedCommandLine, OptionsThatAreBetweenHyphensAlreadyStayBesideThoseThatWereNot) {
  EXPECT_THAT(refusal({"-n", "2", "-x", "A", "--", "-l", "--", "./app"}),
              testing::EndsWith(": wherry mpirun -n 2 -- -x A -l -- ./app"));
  EXPECT_THAT(refusal({"-n", "2", "-x", "A", "--", "./app"}),
              testing::EndsWith(": wherry mpirun -n 2 -- -x A -- ./app"));
  EXPECT_THAT(refusal({"-x"}), testing::EndsWith(": wherry mpirun -- -x -- PROGRAM"));
}

TEST_F(NormalisedCommandLine, AnUnknownOptionIsNamed) {
  EXPECT_THAT(refusal({"-n", "2", "--frob", "./app"}), testing::StartsWith("--frob is not an option of wherry mpirun"));
  EXPECT_THAT(refusal({"-npx", "2", "./app"}), testing::StartsWith("-npx is not an option"));
}

}  // namespace
}  // namespace wherry::tools
