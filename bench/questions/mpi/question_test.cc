// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/mpi/question.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/harness/fake_system.hpp"

namespace wherry::bench::mpi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines(const Options& options) {
  std::vector<std::string> found;
  for (const Job& job : jobs(options)) found.push_back(to_line(job));
  return found;
}

Options asked(std::vector<std::string> figures) {
  Options options;
  options.sizes = {8, 4096};
  options.seconds = 0.5;
  options.senders = {2, 48};
  options.mpi.figures = std::move(figures);
  return options;
}

TEST(MpiQuestion, TheFiguresBetweenTwoHaveTheSizesThatAreAskedFor) {
  EXPECT_THAT(lines(asked({"latency"})), ElementsAre("latency 8 0.5", "latency 4096 0.5"));
}

TEST(MpiQuestion, MemoryIsLookedAtLastWhenEverythingHasBeenInUse) {
  EXPECT_EQ(jobs(asked({})).back().figure, "memory");
  EXPECT_EQ(jobs(asked({})).front().figure, "latency");
}

TEST(MpiQuestion, AFigureIsTheMedianOfAllLaunches) {
  FakeSystem system("wherry-mpich-topology", {});
  const std::vector<Job> all = jobs(asked({"halo-1"}));
  std::vector<Finding> findings;
  for (const double ns : {3000.0, 1000.0, 2000.0}) {
    findings.push_back({.measures = std::vector<Measures>(all.size(), Measures{{"ns_mean", ns}})});
  }
  std::vector<Row> rows;
  append_rows(rows, system, 48, all, findings);
  ASSERT_EQ(rows.size(), all.size());
  EXPECT_EQ(rows[0].mode, "halo-1");
  EXPECT_EQ(rows[0].senders, 48);
  EXPECT_EQ(rows[0].size, 1024);
  EXPECT_EQ(rows[0].median, 2000);
  EXPECT_EQ(rows[0].n, 3);
}

TEST(MpiQuestion, EachMpiHasTablesOfItsOwnWithItsSharedMemoryAsTheReference) {
  std::vector<Row> rows;
  for (const char* system : {"mpich", "wherry-mpich-adaptive", "ompi", "wherry-ompi-adaptive"}) {
    const double ns = system == std::string("ompi") ? 4000 : 1000;
    rows.push_back({.bench = "mpi",
                    .system = system,
                    .mode = "latency",
                    .senders = 2,
                    .size = 8,
                    .metric = "ns_p50",
                    .median = ns});
  }
  const std::string text = tables(rows, asked({}));
  EXPECT_THAT(text, HasSubstr("as a multiple of mpich\n  wherry-mpich-adaptive      1.00x"));
  EXPECT_THAT(text, HasSubstr("as a multiple of ompi\n  wherry-ompi-adaptive      0.25x"));
  EXPECT_THAT(text, Not(HasSubstr("48 ranks")));
}

}  // namespace
}  // namespace wherry::bench::mpi
