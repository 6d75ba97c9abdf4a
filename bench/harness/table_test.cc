// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace wherry::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Row row(const std::string& system, std::uint64_t size, double median) {
  return {.bench = "stream", .system = system, .mode = "handover", .size = size, .metric = "GB/s", .median = median};
}

const TableOf kThroughput{.title = "GB/s", .bench = "stream", .mode = "handover", .metric = "GB/s", .ratios = true};

/// The words of the line that begins with `head`.
std::vector<std::string> line(const std::string& text, const std::string& head) {
  std::istringstream lines(text);
  for (std::string found; std::getline(lines, found);) {
    if (!found.starts_with(head)) continue;
    std::istringstream words(found.substr(head.size()));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

TEST(Table, MarksTheBestOfEachColumnAndNeverALimit) {
  const std::vector<Row> rows{row("wherry", 64, 2),         row("tcp", 64, 1),
                              row("wherry", 4096, 3),       row("tcp", 4096, 4),
                              row("limit:memcpy-1", 64, 9), row("limit:memcpy-1", 4096, 9)};
  const std::string text = table(rows, kThroughput);
  EXPECT_THAT(line(text, "wherry "), ElementsAre("*2.00", "3.00"));
  EXPECT_THAT(line(text, "tcp "), ElementsAre("1.00", "*4.00"));
  EXPECT_THAT(line(text, "limit:memcpy-1"), ElementsAre("9.00", "9.00"));
}

TEST(Table, ComparesWherryWithTheBestPeerAndWithEachLimit) {
  const std::vector<Row> rows{row("wherry", 64, 3), row("wherry-reserve", 64, 8), row("tcp", 64, 1), row("ucx", 64, 2),
                              row("limit:two-copy", 64, 6)};
  const std::string text = table(rows, kThroughput);
  EXPECT_THAT(line(text, "  the best peer"), ElementsAre("1.50x"));  // Wherry's other way is no peer.
  EXPECT_THAT(line(text, "  two-copy"), ElementsAre("0.50x"));
}

TEST(Table, ComparesEveryOtherWithTheReference) {
  TableOf file = kThroughput;
  file.ratios = false;
  file.reference = "native";
  const std::vector<Row> rows{row("native", 64, 2), row("wherry-run-cache", 64, 3), row("wherry-api-host", 64, 1)};
  EXPECT_THAT(line(table(rows, file), "  wherry-run-cache"), ElementsAre("1.50x"));
  EXPECT_THAT(line(table(rows, file), "  wherry-api-host"), ElementsAre("0.50x"));
  EXPECT_THAT(line(table(rows, file), "  native"), IsEmpty());
  EXPECT_THAT(line(table(std::span(rows).subspan(1), file), "  wherry-run-cache"), IsEmpty());
  EXPECT_THAT(line(table(std::span(rows).first(1), file), "as a multiple of"), IsEmpty());
}

TEST(Table, ComparesAnyOneWithThoseItIsToldTo) {
  TableOf zmq = kThroughput;
  zmq.ratios = false;
  zmq.compared = "zmq-wherry";
  zmq.compared_to = {"zmq-ipc", "nobody"};
  const std::vector<Row> rows{row("zmq-wherry", 64, 3), row("zmq-ipc", 64, 2), row("zmq-tcp", 64, 1)};
  EXPECT_THAT(line(table(rows, zmq), "  zmq-ipc"), ElementsAre("1.50x"));
  EXPECT_THAT(line(table(rows, zmq), "  nobody"), IsEmpty());
  EXPECT_THAT(line(table(std::span(rows).subspan(1), zmq), "  zmq-ipc"), IsEmpty());
}

TEST(Table, TheSpreadStandsBesideTheFigureWhereAskedFor) {
  TableOf spread = kThroughput;
  spread.spread = true;
  std::vector<Row> rows{row("wherry", 64, 2)};
  rows[0].mad = 0.1;
  EXPECT_THAT(line(table(rows, spread), "wherry "), ElementsAre("*2.00±5%"));
}

TEST(Table, TheLowestIsBestWhereItSaysSo) {
  TableOf latency = kThroughput;
  latency.highest_is_best = false;
  const std::vector<Row> rows{row("wherry", 64, 2), row("tcp", 64, 1)};
  EXPECT_THAT(line(table(rows, latency), "tcp "), ElementsAre("*1.00"));
}

TEST(Table, AFigureThatIsNotThereIsADash) {
  const std::vector<Row> rows{row("wherry", 64, 2), row("wherry", 128, 2), row("tcp", 128, 1)};
  EXPECT_THAT(line(table(rows, kThroughput), "tcp "), ElementsAre("-", "1.00"));
}

TEST(Table, TakesOnlyTheRowsItIsAbout) {
  Row other = row("tcp", 64, 5);
  other.mode = "touched";
  EXPECT_THAT(table(std::vector{other}, kThroughput), IsEmpty());
  other = row("tcp", 64, 5);
  other.senders = 8;
  EXPECT_THAT(table(std::vector{other}, kThroughput), IsEmpty());
  TableOf by_senders = kThroughput;
  by_senders.columns = Columns::senders;
  EXPECT_THAT(line(table(std::vector{other}, by_senders), "tcp "), ElementsAre("*5.00"));
}

TEST(Table, FiguresHaveThreeDigits) {
  EXPECT_EQ(figure(0.01234), "0.0123");
  EXPECT_EQ(figure(0.1234), "0.123");
  EXPECT_EQ(figure(1.234), "1.23");
  EXPECT_EQ(figure(12.34), "12.3");
  EXPECT_EQ(figure(1234), "1234");
  EXPECT_EQ(figure(0), "0");
}

}  // namespace
}  // namespace wherry::bench
