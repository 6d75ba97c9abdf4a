// SPDX-License-Identifier: Apache-2.0
// The systems of `wherry bench root`, with shell scripts in the place of their program.
#include "bench/systems/root/systems.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/scoped_environment.hpp"
#include "bench/questions/root/question.hpp"
#include "tests/common/temporary_directory.hpp"

namespace wherry::bench::root {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::seconds kTimeout{1000};

class RootSystems : public ::testing::Test {
 protected:
  RootSystems() : named_("WHERRY_BENCH_ROOT", folder_.path().c_str()) {}

  /// A program that answers each sample with what `result` prints. Each of its lives writes a line.
  void write(const std::string& result) {
    const fs::path path = folder_.path() / "wherry-bench-root";
    std::ofstream(path) << "#!/bin/bash\ncd " << folder_.path().string() << "\necho $$ >>lives\n"
                        << "echo processes $$\necho version 6.40\n"
                        << "while read -r word job; do [[ $word == end ]] && exit\n"
                        << result << "\ndone\n";
    fs::permissions(path, fs::perms::owner_all);
  }

  [[nodiscard]] std::vector<pid_t> lives() const {
    std::ifstream lines(folder_.path() / "lives");
    std::vector<pid_t> found;
    for (pid_t pid = 0; lines >> pid;) found.push_back(pid);
    return found;
  }

  RootSystem& system(const std::string& name = "hadd") {
    if (registry_.systems.empty()) add_systems(registry_);
    return dynamic_cast<RootSystem&>(*registry_.select(std::vector{name}, "root").at(0));
  }

  static Job job() { return {.figure = Figure::merge, .workers = 4, .files = 10, .size = 1000}; }
  static std::string done(double seconds) {
    return "echo '" + ("done " + to_line(Finding{.seconds = seconds, .useful_bytes = 1})) + "'";
  }

  test::TemporaryDirectory folder_;
  ScopedEnvironment named_;
  Registry registry_;
};

TEST_F(RootSystems, ASampleIsWhatTheProgramSaysAndAllShareOne) {
  write(done(0.5));
  EXPECT_EQ(system("hadd").take(job(), kTimeout).seconds, 0.5);
  EXPECT_EQ(system("tsocket-tcp").take(job(), kTimeout).seconds, 0.5);
  EXPECT_EQ(system("hadd").version(), "6.40");
  EXPECT_EQ(lives().size(), 1U);
}

TEST_F(RootSystems, TheProgramIsToldTheJobAndWhoseItIs) {
  write("echo \"$job\" >job\n" + done(1));
  system("tsocket-unix-corrected").take(job(), kTimeout);
  std::ifstream file(folder_.path() / "job");
  std::string line;
  std::getline(file, line);
  const Job told = job_in(line);
  EXPECT_EQ(told.system, "tsocket-unix-corrected");
  EXPECT_EQ(told.workers, 4U);
}

TEST_F(RootSystems, AFailureIsToldAndTheNextSampleHasAProgramAgain) {
  write("if [[ -f once ]]; then " + done(1) + "; else touch once; echo 'worker 3 fell' >&2; echo failed worker 3; fi");
  EXPECT_THAT([this] { system().take(job(), kTimeout); },
              ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("failed worker 3"), HasSubstr("worker 3 fell"))));
  EXPECT_EQ(system().take(job(), kTimeout).seconds, 1);
  EXPECT_EQ(lives().size(), 2U);
}

TEST_F(RootSystems, AProgramThatDiesFailsTheSample) {
  write("kill -9 $$");
  EXPECT_THAT([this] { system().take(job(), kTimeout); }, ThrowsMessage<std::runtime_error>(HasSubstr("has ended")));
}

TEST_F(RootSystems, AProgramThatHangsIsEndedWithAllThatItStarted) {
  write("sleep 1000 & echo $! >>lives; sleep 1000");
  EXPECT_THROW(system().take(job(), std::chrono::seconds{1}), std::runtime_error);
  for (const pid_t pid : lives()) {
    // Without a time limit: the test's watchdog ends a wait that is too long.
    while (::kill(pid, 0) == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

TEST_F(RootSystems, EachCanDoWhatItCanDo) {
  write(done(1));
  Job asked = job();
  EXPECT_TRUE(system("hadd").can(asked));
  EXPECT_FALSE(system("tbuffermerger").can(asked)) << "threads only";
  asked.threads = true;
  EXPECT_TRUE(system("tbuffermerger").can(asked));
  asked.tree = Tree::higgs;
  EXPECT_FALSE(system("tbuffermerger").can(asked)) << "it takes no files";
  EXPECT_TRUE(system("tsocket-tcp").can(asked));
  asked = job();
  asked.figure = Figure::transfer;
  EXPECT_FALSE(system("hadd").can(asked));
  EXPECT_FALSE(system("tsocket-tcp-corrected").can(asked)) << "the same as tsocket-tcp";
  EXPECT_TRUE(system("tsocket-tcp").can(asked));
  asked.workers = 240;
  EXPECT_TRUE(system("tsocket-tcp").can(asked));
  EXPECT_TRUE(system("wherry-tscif").can(asked));
  asked.workers = 1001;
  EXPECT_FALSE(system("wherry-tscif").can(asked)) << "more descriptors than TMonitor takes";
}

/// The points of a system's rows.
std::vector<std::pair<std::uint32_t, std::uint64_t>> points_of(const std::vector<Row>& rows, const std::string& name) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> found;
  for (const Row& row : rows) {
    if (row.system == name && row.metric == "merge_GB/s") found.emplace_back(row.senders, row.size);
  }
  return found;
}

Options merging() {
  Options options;
  options.sizes = {1000, 2000, 3000};
  options.senders = {4, 60};
  options.samples = 1;
  options.smoke = true;
  options.root.figures = {"merge"};
  options.root.processes = true;
  return options;
}

TEST_F(RootSystems, TheStockServersAsShippedAreMeasuredAtOnePointUnlessTheyAreNamed) {
  write(done(1));
  std::vector<System*> both{&system("tsocket-tcp"), &system("hadd")};
  Options options = merging();
  Circumstances circumstances;
  const std::vector<Row> rows = measure(options, both, circumstances);
  EXPECT_THAT(points_of(rows, "hadd"),
              UnorderedElementsAre(Pair(4, 2000), Pair(60, 2000), Pair(4, 1000), Pair(4, 3000)));
  EXPECT_THAT(points_of(rows, "tsocket-tcp"), ElementsAre(Pair(4, 2000)));
  options.systems = {"tsocket-tcp"};
  EXPECT_EQ(points_of(measure(options, both, circumstances), "tsocket-tcp").size(), 4U);
  EXPECT_THAT(circumstances.failures, IsEmpty());
}

TEST_F(RootSystems, WhoFailsIsLeftOutAtThatPointAndTold) {
  write("if [[ $job == *'\"workers\":60'* ]]; then echo failed worker 3; else " + done(1) + "; fi");
  std::vector<System*> one{&system("hadd")};
  Circumstances circumstances;
  const std::vector<Row> rows = measure(merging(), one, circumstances);
  EXPECT_THAT(points_of(rows, "hadd"), UnorderedElementsAre(Pair(4, 2000), Pair(4, 1000), Pair(4, 3000)));
  EXPECT_THAT(circumstances.failures,
              ElementsAre(AllOf(Field(&Failure::system, "hadd"), Field(&Failure::point, HasSubstr("60 x 3 files")),
                                Field(&Failure::reason, HasSubstr("worker 3")))));
}

TEST_F(RootSystems, WithoutTheProgramAllAreMissingAndTheReasonSaysWhatToDo) {
  add_systems(registry_);
  EXPECT_THAT(registry_.systems, IsEmpty());
  EXPECT_THAT(registry_.missing,
              Each(AllOf(Field(&Missing::reason, HasSubstr("make root")), Field(&Missing::question, "root"))));
  EXPECT_FALSE(registry_.missing.empty());
}

}  // namespace
}  // namespace wherry::bench::root
