// SPDX-License-Identifier: Apache-2.0
#include "bench/questions/file/question.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "bench/questions/file/crossing.hpp"

namespace wherry::bench::file {
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
  made.sizes = {512, 64 << 10, 16 * kMiB};
  made.senders = {1, 2, 48};
  made.bytes = 16 * kMiB;
  return made;
}

using Shape = std::pair<std::uint32_t, std::uint64_t>;

std::vector<Shape> shapes(const std::vector<Point>& points, Figure figure, bool threads = false) {
  std::vector<Shape> found;
  for (const Point& point : points) {
    if (point.figure == figure && point.threads == threads) found.emplace_back(point.processes, point.unit);
  }
  return found;
}

TEST(FileQuestion, EverySizeWithTheFirstNumberAndEveryNumberAtTheMiddleSize) {
  const std::vector<Point> all = points(options());
  const std::vector sizes{Shape(1, 512), Shape(1, 64 << 10), Shape(1, 16 * kMiB)};
  std::vector numbers = sizes;
  numbers.insert(numbers.end(), {Shape(2, 64 << 10), Shape(48, 64 << 10)});
  for (const Figure figure : {Figure::hit, Figure::first, Figure::cold, Figure::write, Figure::synced}) {
    EXPECT_EQ(shapes(all, figure), numbers) << word_of(figure);
  }
  for (const Figure figure : {Figure::random_read, Figure::random_write}) {
    EXPECT_THAT(shapes(all, figure), ElementsAre(Shape(1, 4096)));
  }
}

TEST(FileQuestion, HitsAndWritesAreMeasuredWithThreadsToo) {
  Options asked = options();
  asked.file.threads = {4, 48};
  const std::vector<Point> all = points(asked);
  for (const Figure figure : kFigures) {
    const bool scales = figure == Figure::hit || figure == Figure::write || figure == Figure::synced;
    const std::vector<Shape> wanted{Shape(4, 64 << 10), Shape(48, 64 << 10)};
    EXPECT_EQ(shapes(all, figure, true), scales ? wanted : std::vector<Shape>()) << word_of(figure);
  }
  EXPECT_TRUE(job_of({Figure::hit, 4096, kMiB, 4, true}, 0.5).threads);
}

TEST(FileQuestion, BytesAreUsedInPiecesThatFitACacheAndByOneCall) {
  for (const Figure figure : {Figure::used_read, Figure::used_synced}) {
    EXPECT_THAT(shapes(points(options()), figure),
                ElementsAre(Shape(1, 64 << 10), Shape(1, 16 * kMiB), Shape(2, 64 << 10), Shape(48, 64 << 10)));
    Options many = options();
    many.senders = {8};
    EXPECT_THAT(shapes(points(many), figure), ElementsAre(Shape(8, 64 << 10), Shape(8, 2 * kMiB)));
  }
}

TEST(FileQuestion, TheBytesAreSharedOutInWholeUnits) {
  for (const Point& point : points(options())) {
    EXPECT_EQ(point.bytes % point.unit, 0U);
    EXPECT_LE(point.bytes * point.processes, 16 * kMiB);
    EXPECT_GT((point.bytes + point.unit) * point.processes, 16 * kMiB);
  }
}

TEST(FileQuestion, WhatNoFileCanHaveIsLeftOutAndNothingAtAllIsRefused) {
  Options asked = options();
  asked.senders = {8};
  EXPECT_THAT(shapes(points(asked), Figure::hit), ElementsAre(Shape(8, 512), Shape(8, 64 << 10))) << "2 MiB each";
  asked.sizes = {16 * kMiB};
  asked.file.figures = {"hit"};
  EXPECT_THROW((void)points(asked), std::invalid_argument);
  asked.sizes = {100};
  EXPECT_THROW((void)points(asked), std::invalid_argument);
}

TEST(FileQuestion, EveryWriteOfTheSeedIsSynced) {
  Options asked = options();
  asked.file.figures = {"seed"};
  std::set<Figure> writing;
  for (const Point& point : points(asked)) {
    const Job job = job_of(point, 0.5);
    EXPECT_EQ(job.synced, job.writes) << word_of(point.figure);
    if (job.writes) writing.insert(point.figure);
  }
  EXPECT_EQ(writing, (std::set{Figure::synced, Figure::used_synced}));
}

TEST(FileQuestion, FiguresCanBeChosen) {
  Options asked = options();
  asked.file.figures = {"cold", "write-synced"};
  EXPECT_THAT(points(asked), Each(Field(&Point::figure, ::testing::AnyOf(Figure::cold, Figure::synced))));
}

Job job(Figure figure) { return job_of({figure, 4096, kMiB, 3}, 0.5); }

TEST(FileQuestion, AJobDoesWhatItsFigureSays) {
  std::set<std::string> words;
  for (const Figure figure : kFigures) {
    words.insert(word_of(figure));
    const Job one = job(figure);
    const std::string word = word_of(figure);
    EXPECT_EQ(one.writes, word.find("write") != std::string::npos) << word;
    EXPECT_EQ(one.random, word.starts_with("random")) << word;
    EXPECT_EQ(one.used, word.starts_with("used")) << word;
    EXPECT_EQ(one.synced, word.ends_with("synced")) << word;
    EXPECT_EQ(one.processes, 3U);
  }
  EXPECT_EQ(words.size(), std::size(kFigures));
}

TEST(FileQuestion, WhatIsStrangeToCachesIsReadOnceAndWhatIsAHitOftenBefore) {
  for (const Figure figure : {Figure::first, Figure::cold}) {
    EXPECT_EQ(job(figure).warm_ups, 0U);
    EXPECT_EQ(job(figure).seconds, 0);
  }
  EXPECT_GT(job(Figure::hit).warm_ups, 2U);
  EXPECT_EQ(job(Figure::hit).seconds, 0.5);
}

TEST(FileQuestion, WhatIsWrittenIsNeverAFileThatOthersRead) {
  std::set<std::string> read;
  std::set<std::string> written;
  for (const Figure figure : kFigures) (job(figure).writes ? written : read).insert(job(figure).files);
  for (const std::string& files : written) EXPECT_FALSE(read.contains(files)) << files;
}

TEST(FileQuestion, AFindingIsGivenPerGigabyte) {
  std::vector<Row> rows;
  append_rows(rows, "wherry-run-cache", {Figure::random_read, 4096, kMiB, 8},
              std::vector{Finding{.seconds = 4, .cpu_seconds = 6, .useful_bytes = 2'000'000'000}});
  std::map<std::string, double> medians;
  for (const Row& row : rows) medians[row.metric] = row.median;
  EXPECT_EQ(medians, (std::map<std::string, double>{{"GB/s", 0.5}, {"cpu_s_per_GB", 3}}));
  EXPECT_THAT(rows, Each(AllOf(Field(&Row::bench, "file"), Field(&Row::system, "wherry-run-cache"),
                               Field(&Row::mode, "random-read"), Field(&Row::senders, 8), Field(&Row::size, 4096))));
  append_rows(rows, "native", {}, {});
  EXPECT_EQ(rows.size(), 2U) << "nothing was measured";
}

Row row(const std::string& system, std::uint32_t processes, std::uint64_t size, double median,
        const std::string& mode = "write") {
  return {.bench = "file",
          .system = system,
          .mode = mode,
          .senders = processes,
          .size = size,
          .metric = "GB/s",
          .median = median,
          .n = 5};
}

TEST(FileQuestion, ATableByUnitAndOneByProcessesWithWhatEachIsToNative) {
  const std::vector<Row> rows{row("native", 1, 4096, 2), row("wherry-run-cache", 1, 4096, 6), row("native", 1, 512, 1),
                              row("native", 48, 4096, 4), row("native", 8, 16384, 7, "write-threads")};
  const std::string text = tables(rows, options());
  EXPECT_THAT(text, HasSubstr("GB/s: written, without fsync, one process, by unit"));
  EXPECT_THAT(text, HasSubstr("GB/s: written, without fsync, units of 4 KiB, by number of processes"));
  EXPECT_THAT(text, Not(HasSubstr("units of 512 B, by number"))) << "it stands in the table by unit";
  EXPECT_THAT(text, HasSubstr("GB/s: written, without fsync, units of 16 KiB, by number of threads"));
  EXPECT_THAT(text, HasSubstr("3.00x"));
  EXPECT_THAT(tables({}, options()), IsEmpty());
}

TEST(FileQuestion, WhereTheHostOvertakesTheCacheIsSaid) {
  std::vector<Row> rows{row("wherry-api-cache", 1, 1 << 10, 4, "first"), row("wherry-api-host", 1, 1 << 10, 1, "first"),
                        row("wherry-api-cache", 1, 16 << 10, 4, "first")};
  const auto said = [&rows] { return crossing(rows, "first", 1, "wherry-api-cache", "wherry-api-host"); };
  EXPECT_EQ(said(), "") << "one size only";
  rows.push_back(row("wherry-api-host", 1, 16 << 10, 16, "first"));
  EXPECT_THAT(tables(rows, options()),
              HasSubstr("wherry-api-host is faster than wherry-api-cache from units of about 4.0 KiB on"));
  rows.push_back(row("wherry-api-cache", 1, 64 << 10, 4, "first"));
  rows.push_back(row("wherry-api-host", 1, 64 << 10, 15, "first"));
  rows.push_back(row("wherry-api-cache", 1, 256 << 10, 4, "first"));
  rows.push_back(row("wherry-api-host", 1, 256 << 10, 3, "first"));
  EXPECT_THAT(said(), HasSubstr("of about 4.0 KiB on")) << "the last size is noise";
  rows.resize(4);
  rows.back().median = 3;
  EXPECT_THAT(said(), HasSubstr("wherry-api-cache is the faster up to the longest"));
  rows[1].median = 5;
  rows.back().median = 5;
  EXPECT_THAT(said(), HasSubstr("wherry-api-host is the faster from the shortest"));
}

TEST(FileQuestion, WhereTheHostOvertakesAMountsCacheIsSaidForReadsAndForWrites) {
  for (const Figure figure : {Figure::hit, Figure::first, Figure::cold, Figure::write, Figure::synced}) {
    const std::string mode = word_of(figure);
    std::vector<Row> rows;
    for (const std::string system : {"cache", "card"}) {
      for (const std::uint64_t size : {1 << 10, 16 << 10})
        rows.push_back(row("wherry-mount-" + system, 1, size, 4, mode));
    }
    rows.push_back(row("wherry-mount-host", 1, 1 << 10, 1, mode));
    rows.push_back(row("wherry-mount-host", 1, 16 << 10, 16, mode));
    const std::string text = tables(rows, options());
    for (const std::string system : {"cache", "card"}) {
      const std::string line =
          "\nwherry-mount-host is faster than wherry-mount-" + system + " from units of about 4.0 KiB on\n";
      EXPECT_EQ(text.find(line), text.rfind(line)) << mode << ": once";
      EXPECT_THAT(text, HasSubstr(line)) << mode;
    }
    EXPECT_THAT(text, Not(HasSubstr("wherry-api")));
    for (Row& one : rows) one.mode = word_of(Figure::used_read);
    EXPECT_THAT(tables(rows, options()), Not(HasSubstr("is faster"))) << "pieces, and the whole at once";
  }
}

}  // namespace
}  // namespace wherry::bench::file
