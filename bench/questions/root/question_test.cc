// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/root/question.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace wherry::bench::root {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Options options() {
  Options made;
  made.sizes = {64 << 10, 2 * kMiB, 8 * kMiB};
  made.senders = {4, 1, 60};
  made.bytes = 64 * kMiB;
  return made;
}

std::vector<std::pair<std::uint32_t, std::uint64_t>> shapes(const std::vector<Job>& jobs, Figure figure,
                                                            const std::string& mode) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> found;
  for (const Job& job : jobs) {
    if (job.figure == figure && mode_of(job) == mode) found.emplace_back(job.workers, job.size);
  }
  return found;
}

TEST(RootQuestion, EveryNumberAtTheMiddleSizeAndEverySizeWithTheFirstNumber) {
  const std::vector<Job> all = jobs(options());
  for (const Figure figure : {Figure::transfer, Figure::fill, Figure::merge}) {
    EXPECT_THAT(shapes(all, figure, "processes"),
                ElementsAre(std::pair(4, 2 * kMiB), std::pair(1, 2 * kMiB), std::pair(60, 2 * kMiB),
                            std::pair(4, 64 << 10), std::pair(4, 8 * kMiB)));
    EXPECT_THAT(shapes(all, figure, "threads"), ElementsAre(std::pair(4, 2 * kMiB)));
  }
  EXPECT_THAT(shapes(all, Figure::merge, "processes-higgs"), ElementsAre(std::pair(4, 1'960'000)));
  EXPECT_THAT(shapes(all, Figure::fill, "processes-higgs"), IsEmpty());
}

TEST(RootQuestion, WhoAsksForThreadsGetsAllShapesInThreadsAndNoProcesses) {
  Options asked = options();
  asked.root.threads = true;
  const std::vector<Job> all = jobs(asked);
  EXPECT_THAT(all, Each(Field(&Job::threads, true)));
  EXPECT_EQ(shapes(all, Figure::fill, "threads").size(), 5U);
  EXPECT_EQ(shapes(all, Figure::merge, "threads-higgs").size(), 1U);
}

TEST(RootQuestion, FiguresAndTreesCanBeChosen) {
  Options asked = options();
  asked.root.figures = {"merge"};
  asked.root.trees = {"higgs"};
  EXPECT_THAT(jobs(asked), ElementsAre(AllOf(Field(&Job::figure, Figure::merge), Field(&Job::tree, Tree::higgs))));
}

TEST(RootQuestion, FilesAreAsManyAsTheBytesAllowUnlessTheyAreGiven) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> files;
  for (const Job& job : jobs(options())) files[{job.workers, job.size}] = job.files;
  EXPECT_EQ((files[{4, 2 * kMiB}]), 8U);
  EXPECT_EQ((files[{4, 64 << 10}]), 100U) << "never more than 100";
  EXPECT_EQ((files[{60, 2 * kMiB}]), 1U) << "never less than 1";
  Options asked = options();
  asked.smoke = true;
  EXPECT_THAT(jobs(asked), Each(Field(&Job::files, 3)));
  asked.root.files = 7;
  EXPECT_THAT(jobs(asked), Each(Field(&Job::files, 7)));
}

const Job kFill{.figure = Figure::fill, .system = "wherry", .workers = 4, .files = 10, .size = 2 * kMiB};

std::map<std::string, double> medians(const std::vector<Row>& rows) {
  std::map<std::string, double> found;
  for (const Row& row : rows) found[row.metric] = row.median;
  return found;
}

TEST(RootQuestion, AFindingIsGivenPerGigabyteOfUsefulBytes) {
  std::vector<Row> rows;
  const Finding finding{.seconds = 4,
                        .server_cpu_seconds = 1,
                        .worker_cpu_seconds = 5,
                        .useful_bytes = 2'000'000'000,
                        .wire_bytes = 3'000'000'000,
                        .memory_bytes = 77};
  append_rows(rows, "6.40", kFill, std::vector{finding});
  EXPECT_EQ(medians(rows), (std::map<std::string, double>{{"fill_GB/s", 0.5},
                                                          {"fill_cpu_s_per_GB", 3},
                                                          {"fill_server_cpu_s_per_GB", 0.5},
                                                          {"fill_sent_per_byte", 1.5},
                                                          {"memory_bytes_per_worker", 77}}));
  EXPECT_THAT(rows, Each(AllOf(Field(&Row::bench, "root"), Field(&Row::system, "wherry"), Field(&Row::version, "6.40"),
                               Field(&Row::mode, "processes"), Field(&Row::senders, 4), Field(&Row::size, 2 * kMiB))));
}

TEST(RootQuestion, TheThreeFiguresHaveNamesOfTheirOwn) {
  for (const auto& [figure, metric] : {std::pair{Figure::transfer, "GB/s"}, std::pair{Figure::fill, "fill_GB/s"},
                                       std::pair{Figure::merge, "merge_GB/s"}}) {
    Job job = kFill;
    job.figure = figure;
    std::vector<Row> rows;
    append_rows(rows, "", job, std::vector{Finding{.seconds = 1, .useful_bytes = 1'000'000'000}});
    EXPECT_EQ(rows.at(0).metric, metric);
    EXPECT_EQ(rows.at(0).median, 1);
    // Nothing is sent, no memory was looked at: no such rows.
    EXPECT_EQ(rows.size(), 3U);
  }
}

Row row(const std::string& system, std::uint32_t workers, std::uint64_t size, double median) {
  return {.bench = "root",
          .system = system,
          .mode = "processes",
          .senders = workers,
          .size = size,
          .metric = "merge_GB/s",
          .median = median,
          .n = 5};
}

TEST(RootQuestion, ATableByWorkersAndOneBySizeWithWhatWherryIsToTheOthers) {
  const std::vector<Row> rows{row("wherry", 4, 2 * kMiB, 6), row("hadd", 4, 2 * kMiB, 2),
                              row("wherry", 60, 2 * kMiB, 5), row("wherry", 4, 8 * kMiB, 7)};
  const std::string text = tables(rows, {});
  EXPECT_THAT(text, HasSubstr("GB/s, with merge, processes, files of 2 MiB, by number of workers"));
  EXPECT_THAT(text, HasSubstr("GB/s, with merge, processes, 4 workers, by size of a file"));
  EXPECT_THAT(text, HasSubstr("3.00x"));
  EXPECT_THAT(text, Not(HasSubstr("files of 8 MiB"))) << "it stands in the table by size";
}

TEST(RootQuestion, WhatStandsAloneHasATable) {
  EXPECT_THAT(tables(std::vector{row("hadd", 4, 2 * kMiB, 2)}, {}), HasSubstr("hadd"));
}

}  // namespace
}  // namespace wherry::bench::root
